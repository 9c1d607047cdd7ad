#include "closed_form.hpp"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace iter_core {

namespace {

constexpr double kGeometryTolerance = 1e-7;  // rad and m: what a rounded robot description may be off
constexpr double kExactTolerance = 1e-10;    // m
constexpr double kPi = 3.14159265358979323846;

std::string format(const char* text, double value) {
  char buffer[256];
  std::snprintf(buffer, sizeof(buffer), text, value);
  return buffer;
}

struct Unit {
  double c, s;
};

// The points of the unit circle where a c + b s = k (amplitude^2 = a^2 + b^2), given root = sqrt(amplitude^2 - k^2),
// zero where there is none: then the nearest point. `side` is 1 or -1.
Unit on_circle(double a, double b, double k, double amplitude_squared, double root, double side) {
  if (!(amplitude_squared > 0)) return {1, 0};
  const double scale = 1 / amplitude_squared;
  return {(a * k - side * b * root) * scale, (b * k + side * a * root) * scale};
}

double wrap(double angle) {
  if (angle > kPi) return angle - 2 * kPi;
  if (angle < -kPi) return angle + 2 * kPi;
  return angle;
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

  tip_rotation_ = zero.tip.rotation.transpose();
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
  cross6_turned_ = in_frame(axis6_.cross(side6_));
  wrist_a_ = axis6_turned_.cosine.x();
  wrist_b_ = axis6_turned_.sine.x();
  wrist_c_ = axis6_turned_.constant.x();
  wrist_square_ = std::abs(axis[3].dot(axis[4])) < 1e-12 && std::abs(axis[4].dot(axis[5])) < 1e-12;
}

void ClosedForm::solve(const Pose& target, ClosedFormSolutions& result) const {
  const Eigen::Matrix3d rotation = target.rotation * tip_rotation_;
  const Vector wrist = target.position + target.rotation * wrist_in_tip_ - shoulder_;
  const Vector axis6 = rotation * axis6_, side6 = rotation * side6_;

  // Joint 1, circle and plane: the normal of the arm's plane turns until the wrist lies at the offset.
  const double a1 = normal_turned_.cosine.dot(wrist), b1 = normal_turned_.sine.dot(wrist);
  const double k1 = offset_ - normal_turned_.constant.dot(wrist);
  const double squared1 = a1 * a1 + b1 * b1, amplitude1 = std::sqrt(squared1);
  const double beyond1 = std::abs(k1) - amplitude1;
  const double root1 = beyond1 < 0 ? std::sqrt((amplitude1 - k1) * (amplitude1 + k1)) : 0;
  const double reached1 = beyond1 < 0 ? k1 : std::copysign(amplitude1, k1);
  for (int shoulder = 0; shoulder < 2; ++shoulder) {
    const Unit one = on_circle(a1, b1, reached1, squared1, root1, shoulder == 0 ? 1 : -1);
    const double q1 = std::atan2(one.s, one.c);
    const Vector normal = normal_turned_.constant + one.c * normal_turned_.cosine + one.s * normal_turned_.sine;
    const Vector x = x_turned_.constant + one.c * x_turned_.cosine + one.s * x_turned_.sine;
    const Vector y = y_turned_.constant + one.c * y_turned_.cosine + one.s * y_turned_.sine;
    const Planar reach{x.dot(wrist) - upper_root_.x, y.dot(wrist) - upper_root_.y};
    const double along = normal.dot(axis6);
    const Planar axis6_planar{x.dot(axis6), y.dot(axis6)};
    const Vector side{normal.dot(side6), x.dot(side6), y.dot(side6)};

    // Joint 5, circle and plane: axis 6 turns about axis 5 until its part along the normal fits.
    const double k5 = along - wrist_c_;
    const double squared5 = wrist_a_ * wrist_a_ + wrist_b_ * wrist_b_;
    double root5, reached5 = k5;
    if (wrist_square_) {
      // The root is what of axis 6 lies in the plane; near the wrist's singularity 1 - k^2 would lose half the digits.
      root5 = std::sqrt(axis6_planar.x * axis6_planar.x + axis6_planar.y * axis6_planar.y);
    } else {
      const double amplitude = std::sqrt(squared5);
      root5 = std::abs(k5) < amplitude ? std::sqrt((amplitude - k5) * (amplitude + k5)) : 0;
      if (!(std::abs(k5) < amplitude)) reached5 = std::copysign(amplitude, k5);
    }
    for (int flip = 0; flip < 2; ++flip) {
      const Unit five = on_circle(wrist_a_, wrist_b_, reached5, squared5, root5, flip == 0 ? 1 : -1);
      const double q5 = std::atan2(five.s, five.c);
      // Joints 2 + 3 + 4, circle and point: axis 6 as joint 5 leaves it turns in the plane onto the target's.
      const Vector axis = axis6_turned_.constant + five.c * axis6_turned_.cosine + five.s * axis6_turned_.sine;
      double c = axis.y() * axis6_planar.x + axis.z() * axis6_planar.y;
      double s = axis.y() * axis6_planar.y - axis.z() * axis6_planar.x;
      const double length = std::sqrt(c * c + s * s);
      c = length > 0 ? c / length : 1;
      s = length > 0 ? s / length : 0;
      const double sum = std::atan2(s, c);
      // Joint 6, circle and point: the vectors square to axis 6. Right for whatever sum was taken, so that the
      // orientation is exact at the wrist's singularity too.
      const auto turned = [&](const Turning& t) {
        const Vector v = t.constant + five.c * t.cosine + five.s * t.sine;
        return Vector(v.x(), c * v.y() - s * v.z(), s * v.y() + c * v.z());
      };
      const double q6 = std::atan2(turned(cross6_turned_).dot(side), turned(side6_turned_).dot(side));

      // Joint 3, circle and sphere: the forearm's end turns until it is as far from axis 2 as the wrist asks.
      const Planar span{reach.x - (c * wrist_.x - s * wrist_.y), reach.y - (s * wrist_.x + c * wrist_.y)};
      const double distance = std::sqrt(span.x * span.x + span.y * span.y);
      const double a3 = upper_.x * fore_.x + upper_.y * fore_.y, b3 = -(upper_.x * fore_.y - upper_.y * fore_.x);
      const double longest = upper_length_ + fore_length_, shortest = std::abs(upper_length_ - fore_length_);
      const double product = upper_length_ * fore_length_;
      const double beyond3 = std::max(distance - longest, shortest - distance);
      double k3, root3 = 0;
      if (beyond3 < 0) {
        const double short_of = 0.5 * (longest - distance) * (longest + distance);
        const double above = 0.5 * (distance - shortest) * (distance + shortest);
        k3 = short_of < above ? product - short_of : above - product;
        root3 = std::sqrt(short_of * above);
      } else {
        k3 = distance > shortest ? product : -product;
      }
      for (int elbow = 0; elbow < 2; ++elbow) {
        const Unit three = on_circle(a3, b3, k3, product * product, root3, elbow == 0 ? 1 : -1);
        const double theta3 = std::atan2(three.s, three.c);
        // Joint 2, circle and point.
        const Planar arm{upper_.x + three.c * fore_.x - three.s * fore_.y,
                         upper_.y + three.s * fore_.x + three.c * fore_.y};
        const double theta2 = std::atan2(arm.x * span.y - arm.y * span.x, arm.x * span.x + arm.y * span.y);
        const int row = 4 * shoulder + 2 * flip + elbow;
        double* q = result.q[row];
        q[0] = q1;
        q[1] = sign_[0] * theta2;
        q[2] = sign_[1] * theta3;
        q[3] = sign_[2] * wrap(wrap(sum - theta2) - theta3);
        q[4] = q5;
        q[5] = q6;
        const double error1 = std::max(beyond1, 0.0), error3 = std::max(beyond3, 0.0);
        result.position_error[row] = std::sqrt(error1 * error1 + error3 * error3);
        result.exact[row] = result.position_error[row] <= kExactTolerance && std::abs(k5 - reached5) <= 1e-12;
      }
    }
  }
}

}  // namespace iter_core
