#include "closed_form.hpp"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "lanes.hpp"
#include "subproblems.hpp"

namespace iter_core {

namespace {

constexpr double kGeometryTolerance = 1e-7;  // rad and m: what a rounded robot description may be off
constexpr double kExactPosition = 1e-10;     // m
constexpr double kFreeOrientation = 1e-10;   // rad
constexpr double kExactWrist = 1e-12;        // of a cosine
constexpr double kPi = 3.14159265358979323846;

std::string format(const char* text, double value) {
  char buffer[256];
  std::snprintf(buffer, sizeof(buffer), text, value);
  return buffer;
}

template <typename Real>
struct Spatial {
  Real x, y, z;
};

template <typename Real>
ITER_CORE_INLINE Real wrap(const Real& angle) {
  const Real below = select(angle > kPi, angle - 2 * kPi, angle);
  return select(below < -kPi, below + 2 * kPi, below);
}

template <typename Real>
ITER_CORE_INLINE Real chord(const Unit<Real>& a, const Unit<Real>& b) {
  return root((a.c - b.c) * (a.c - b.c) + (a.s - b.s) * (a.s - b.s));
}

template <typename Real>
ITER_CORE_INLINE Real dot(const Eigen::Vector3d& a, const Spatial<Real>& b) {
  return a.x() * b.x + a.y() * b.y + a.z() * b.z;
}

template <typename Real>
ITER_CORE_INLINE Real dot(const Spatial<Real>& a, const Spatial<Real>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

template <typename Real>
ITER_CORE_INLINE Spatial<Real> turn(const Eigen::Vector3d& constant, const Eigen::Vector3d& cosine,
                                    const Eigen::Vector3d& sine, const Unit<Real>& by) {
  return {constant.x() + by.c * cosine.x() + by.s * sine.x(), constant.y() + by.c * cosine.y() + by.s * sine.y(),
          constant.z() + by.c * cosine.z() + by.s * sine.z()};
}

}  // namespace

ClosedForm::Turning ClosedForm::turning(const Vector& direction, const Vector& axis) {
  const Vector along = axis * axis.dot(direction);
  return {along, direction - along, axis.cross(direction)};
}

ClosedForm::ClosedForm(const Chain& chain) {
  if (chain.size() != 6) throw std::invalid_argument(format("the chain has %.0f joints, not 6", chain.size()));
  for (const Joint& joint : chain.joints) {
    if (joint.prismatic) throw std::invalid_argument("a joint of the chain is prismatic, all six must be revolute");
  }
  Kinematics zero;
  const KinematicsSolver solver(chain);
  const double q[6] = {0, 0, 0, 0, 0, 0};
  solver.solve(q, zero);
  Vector axis[6], point[6];
  for (int i = 0; i < 6; ++i) {
    axis[i] = zero.axes.col(i);
    point[i] = zero.origins.col(i);
  }
  for (int i : {2, 3}) {
    const double angle = axis[1].cross(axis[i]).norm();
    if (angle > kGeometryTolerance) {
      throw std::invalid_argument("axes 2 and " + std::to_string(i + 1) +
                                  format(" are not parallel (sine of their angle %.3g)", angle));
    }
  }
  if (axis[0].cross(axis[1]).norm() < kGeometryTolerance) throw std::invalid_argument("axes 1 and 2 are parallel");
  if (axis[3].cross(axis[4]).norm() < kGeometryTolerance) throw std::invalid_argument("axes 4 and 5 are parallel");
  const Vector common = axis[4].cross(axis[5]);
  if (common.norm() < kGeometryTolerance) throw std::invalid_argument("axes 5 and 6 are parallel");
  const double gap = std::abs(common.normalized().dot(point[5] - point[4]));
  if (gap > kGeometryTolerance) {
    throw std::invalid_argument(format("axes 5 and 6 do not meet (they pass at %.3g m)", gap));
  }
  // Where axes 5 and 6 meet: the point of axis 6 that lies nearest to axis 5.
  const double along = axis[4].cross(point[4] - point[5]).dot(axis[4].cross(axis[5])) / common.squaredNorm();
  const Vector wrist = point[5] + along * axis[5];

  wrist_in_tip_ = zero.tip.rotation.transpose() * (wrist - zero.tip.position);
  normal_ = axis[1];
  for (int i = 0; i < 3; ++i) sign_[i] = axis[1 + i].dot(normal_) > 0 ? 1 : -1;
  // The plane's x along the upper arm, so that an UR's planar vectors are free of rounding.
  const Vector upper = point[2] - point[1];
  plane_x_ = upper - normal_ * normal_.dot(upper);
  if (plane_x_.norm() < kGeometryTolerance) throw std::invalid_argument("axes 2 and 3 coincide");
  plane_x_.normalize();
  plane_y_ = normal_.cross(plane_x_);
  // The point of axis 1 nearest to axis 2's point: the shorter the vectors, the smaller their rounding.
  shoulder_ = point[0] + axis[0] * axis[0].dot(point[1] - point[0]);
  upper_root_ = project(point[1] - shoulder_);
  upper_ = project(upper);
  fore_ = project(point[3] - point[2]);
  wrist_ = project(wrist - point[3]);
  offset_ = normal_.dot(wrist - shoulder_);
  upper_length_ = std::hypot(upper_.x, upper_.y);
  fore_length_ = std::hypot(fore_.x, fore_.y);
  longest_ = upper_length_ + fore_length_;
  shortest_ = std::abs(upper_length_ - fore_length_);
  if (fore_length_ < kGeometryTolerance) throw std::invalid_argument("axes 3 and 4 coincide");
  normal_turned_ = turning(normal_, axis[0]);
  x_turned_ = turning(plane_x_, axis[0]);
  y_turned_ = turning(plane_y_, axis[0]);
  axis6_ = axis[5];
  side6_ = axis[4] - axis6_ * axis6_.dot(axis[4]);
  side6_.normalize();
  Eigen::Matrix3d frame;
  frame << normal_.transpose(), plane_x_.transpose(), plane_y_.transpose();
  const auto in_frame = [&](const Vector& v) {
    const Turning t = turning(v, axis[4]);
    return Turning{frame * t.constant, frame * t.cosine, frame * t.sine};
  };
  axis6_turned_ = in_frame(axis6_);
  side6_turned_ = in_frame(side6_);
  axis6_in_tip_ = zero.tip.rotation.transpose() * axis6_;
  side6_in_tip_ = zero.tip.rotation.transpose() * side6_;
  cross6_turned_ = in_frame(axis6_.cross(side6_));
  wrist_a_ = axis6_turned_.cosine.x();
  wrist_b_ = axis6_turned_.sine.x();
  wrist_c_ = axis6_turned_.constant.x();
  wrist_square_ = std::abs(axis[3].dot(axis[4])) < 1e-12 && std::abs(axis[4].dot(axis[5])) < 1e-12;
}

template <typename Real>
struct ClosedForm::Target {
  Spatial<Real> rotation[3];  // rows
  Spatial<Real> position;
};

template <typename Real>
struct ClosedForm::Answer {
  Real q[8][6];
  Real position_error[8];
  Real wrist_error[2];  // of the shoulder's branches: what joint 5 cannot turn to
};

template <typename Real>
ITER_CORE_INLINE void ClosedForm::solve_lanes(const Target<Real>& target, Answer<Real>& answer) const {
  const auto column = [&](const Vector& v) {
    return Spatial<Real>{dot(v, target.rotation[0]), dot(v, target.rotation[1]), dot(v, target.rotation[2])};
  };
  const Spatial<Real> axis6 = column(axis6_in_tip_), side6 = column(side6_in_tip_), lever = column(wrist_in_tip_);
  const Spatial<Real> wrist{target.position.x + lever.x - shoulder_.x(), target.position.y + lever.y - shoulder_.y(),
                            target.position.z + lever.z - shoulder_.z()};
  const Real zero = constant<Real>(0);

  // Joint 1, circle and plane: the normal of the arm's plane turns until the wrist lies at the offset.
  const UnitPair<Real> ones = circle_to_plane<Real>(dot(normal_turned_.cosine, wrist), dot(normal_turned_.sine, wrist),
                                                    offset_ - dot(normal_turned_.constant, wrist));
  for (int shoulder = 0; shoulder < 2; ++shoulder) {
    const Unit<Real> one = ones.at[shoulder];
    const Real q1 = angle_of(one);
    const auto turned1 = [&](const Turning& t) { return turn(t.constant, t.cosine, t.sine, one); };
    const Spatial<Real> normal = turned1(normal_turned_), x = turned1(x_turned_), y = turned1(y_turned_);
    const PlanarOf<Real> reach{dot(x, wrist) - upper_root_.x, dot(y, wrist) - upper_root_.y};
    const Real along = dot(normal, axis6);
    const PlanarOf<Real> axis6_planar{dot(x, axis6), dot(y, axis6)};
    const Spatial<Real> side{dot(normal, side6), dot(x, side6), dot(y, side6)};

    // Joint 5, circle and plane: axis 6 turns about axis 5 until its part along the normal fits.
    const Real k5 = along - wrist_c_;
    const double squared5 = wrist_a_ * wrist_a_ + wrist_b_ * wrist_b_;
    Real root5, reached5 = k5;
    if (wrist_square_) {
      // The root is what of axis 6 lies in the plane; near the wrist's singularity 1 - k^2 would lose half the digits.
      root5 = root(axis6_planar.x * axis6_planar.x + axis6_planar.y * axis6_planar.y);
    } else {
      const double amplitude = root(squared5);
      root5 = root(positive_part((amplitude - k5) * (amplitude + k5)));
      reached5 =
          select(k5 > amplitude, constant<Real>(amplitude), select(k5 < -amplitude, constant<Real>(-amplitude), k5));
    }
    answer.wrist_error[shoulder] = magnitude(k5 - reached5);
    for (int flip = 0; flip < 2; ++flip) {
      const Unit<Real> five = on_circle(wrist_a_, wrist_b_, reached5, squared5, root5, flip == 0 ? 1 : -1);
      const Real q5 = angle_of(five);
      // Joints 2 + 3 + 4, circle and point: axis 6 as joint 5 leaves it turns in the plane onto the target's.
      const auto turned5 = [&](const Turning& t) { return turn(t.constant, t.cosine, t.sine, five); };
      const Spatial<Real> axis = turned5(axis6_turned_);
      const Unit<Real> turn_sum = circle_to_point<Real>({axis.y, axis.z}, axis6_planar);
      Real c = turn_sum.c, s = turn_sum.s;
      const Real length = root(c * c + s * s);
      const Real scale = 1 / select(length > 1e-40, length, constant<Real>(1));
      c = select(length > 1e-40, c * scale, constant<Real>(1));
      s = select(length > 1e-40, s * scale, zero);
      // Near the wrist's singularity the sum is hardly determined, and free at it: then it gives way, as far as the
      // orientation does not feel it, where the arm would not reach otherwise.
      const PlanarOf<Real> first{reach.x - (c * wrist_.x - s * wrist_.y), reach.y - (s * wrist_.x + c * wrist_.y)};
      const Real needed = root(first.x * first.x + first.y * first.y);
      const Real possible = select(needed > longest_, constant<Real>(longest_),
                                   select(needed < shortest_, constant<Real>(shortest_), needed));
      const Real wrist_squared = constant<Real>(wrist_.x * wrist_.x + wrist_.y * wrist_.y);
      const UnitPair<Real> sums =
          circle_to_plane<Real>(reach.x * wrist_.x + reach.y * wrist_.y, reach.y * wrist_.x - reach.x * wrist_.y,
                                0.5 * (reach.x * reach.x + reach.y * reach.y + wrist_squared - possible * possible));
      const Real moved0 = chord(sums.at[0], {c, s}), moved1 = chord(sums.at[1], {c, s});
      const Real moved = select(moved0 < moved1, moved0, moved1);
      const auto gives_way = select(possible == needed, constant<Real>(1), moved * root(length)) <= kFreeOrientation;
      c = select(gives_way, select(moved0 < moved1, sums.at[0].c, sums.at[1].c), c);
      s = select(gives_way, select(moved0 < moved1, sums.at[0].s, sums.at[1].s), s);
      const Real sum = angle_of(s, c);
      // Joint 6, circle and point: the vectors square to axis 6. Right for whatever sum was taken, so that the
      // orientation is exact at the wrist's singularity too.
      const auto on_side = [&](const Turning& t) {
        const Spatial<Real> v = turned5(t);
        return v.x * side.x + (c * v.y - s * v.z) * side.y + (s * v.y + c * v.z) * side.z;
      };
      const Real q6 = angle_of(on_side(cross6_turned_), on_side(side6_turned_));

      // Joint 3, circle and sphere: the forearm's end turns until it is as far from axis 2 as the wrist asks.
      const PlanarOf<Real> span{reach.x - (c * wrist_.x - s * wrist_.y), reach.y - (s * wrist_.x + c * wrist_.y)};
      const Real distance = root(span.x * span.x + span.y * span.y);
      const UnitPair<Real> threes = circle_to_sphere(upper_, upper_length_, fore_, fore_length_, distance);
      const Real error = root(ones.residual * ones.residual + threes.residual * threes.residual);
      for (int elbow = 0; elbow < 2; ++elbow) {
        const Unit<Real> three = threes.at[elbow];
        const Real theta3 = angle_of(three);
        // Joint 2, circle and point.
        const PlanarOf<Real> arm{upper_.x + three.c * fore_.x - three.s * fore_.y,
                                 upper_.y + three.s * fore_.x + three.c * fore_.y};
        const Real theta2 = angle_of(circle_to_point<Real>(arm, span));
        const int row = 4 * shoulder + 2 * flip + elbow;
        Real* q = answer.q[row];
        q[0] = q1;
        q[1] = sign_[0] * theta2;
        q[2] = sign_[1] * theta3;
        q[3] = sign_[2] * wrap(wrap(sum - theta2) - theta3);
        q[4] = q5;
        q[5] = q6;
        answer.position_error[row] = error;
      }
    }
  }
}

void ClosedForm::solve(const Pose& target, ClosedFormSolutions& result) const {
  Target<double> in;
  for (int r = 0; r < 3; ++r) in.rotation[r] = {target.rotation(r, 0), target.rotation(r, 1), target.rotation(r, 2)};
  in.position = {target.position.x(), target.position.y(), target.position.z()};
  Answer<double> answer;
  solve_lanes(in, answer);
  for (int row = 0; row < 8; ++row) {
    std::copy(answer.q[row], answer.q[row] + 6, result.q[row]);
    result.position_error[row] = answer.position_error[row];
    result.exact[row] = answer.position_error[row] <= kExactPosition && answer.wrist_error[row / 4] <= kExactWrist;
  }
}

ITER_CORE_CLONES void ClosedForm::solve_block(const double* targets, double* q, bool* exact) const {
  Target<Lanes> in;
  for (int lane = 0; lane < kLanes; ++lane) {
    const double* m = targets + 16 * lane;
    for (int r = 0; r < 3; ++r) {
      in.rotation[r].x[lane] = m[4 * r];
      in.rotation[r].y[lane] = m[4 * r + 1];
      in.rotation[r].z[lane] = m[4 * r + 2];
    }
    in.position.x[lane] = m[3];
    in.position.y[lane] = m[7];
    in.position.z[lane] = m[11];
  }
  Answer<Lanes> answer;
  solve_lanes(in, answer);
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int row = 0; row < 8; ++row) {
      for (int j = 0; j < 6; ++j) q[48 * lane + 6 * row + j] = answer.q[row][j][lane];
      exact[8 * lane + row] =
          answer.position_error[row][lane] <= kExactPosition && answer.wrist_error[row / 4][lane] <= kExactWrist;
    }
  }
}

void ClosedForm::solve_batch(const double* targets, long count, double* q, bool* exact) const {
  long i = 0;
  for (; i + kLanes <= count; i += kLanes) solve_block(targets + 16 * i, q + 48 * i, exact + 8 * i);
  if (i == count) return;
  double rest[16 * kLanes] = {}, rest_q[48 * kLanes];
  bool rest_exact[8 * kLanes];
  std::copy(targets + 16 * i, targets + 16 * count, rest);
  solve_block(rest, rest_q, rest_exact);
  std::copy(rest_q, rest_q + 48 * (count - i), q + 48 * i);
  std::copy(rest_exact, rest_exact + 8 * (count - i), exact + 8 * i);
}

}  // namespace iter_core
