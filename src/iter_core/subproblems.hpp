// Canonical subproblems of inverse kinematics: where a turning point meets a point, a sphere or a plane. Every answer
// is exact where there is one, else the least-squares one with what it leaves; atan2 (angle_of) is the only inverse
// function.
#pragma once

#include <Eigen/Core>

#include "lanes.hpp"

namespace iter_core {

// An angle as its cosine and sine.
template <typename Real>
struct Unit {
  Real c, s;
};

// A vector in a plane.
template <typename Real>
struct PlanarOf {
  Real x, y;
};

// The two answers, the same twice where circle and target only touch or miss; residual is the distance left.
template <typename Real>
struct UnitPair {
  Unit<Real> at[2];
  Real residual;
};

// The points of the unit circle where a c + b s = k, given root = sqrt(a^2 + b^2 - k^2); side (1 or -1) tells them
// apart.
template <typename Real, typename Coefficient>
ITER_CORE_INLINE Unit<Real> on_circle(const Coefficient& a, const Coefficient& b, const Real& k,
                                      const Coefficient& amplitude_squared, const Real& root, double side) {
  const auto there = amplitude_squared > 1e-290;  // below, its inverse is not a number any more
  const Coefficient scale = 1 / select(there, amplitude_squared, constant<Coefficient>(1));
  const Real c = (a * k - (side * b) * root) * scale, s = (b * k + (side * a) * root) * scale;
  if constexpr (sizeof(Coefficient) == sizeof(Real)) {
    return {select(there, c, constant<Real>(1)), select(there, s, constant<Real>(0))};
  } else {
    return {c, s};
  }
}

// Circle and plane: a c + b s = k.
template <typename Real>
ITER_CORE_INLINE UnitPair<Real> circle_to_plane(const Real& a, const Real& b, const Real& k) {
  const Real squared = a * a + b * b, amplitude = root(squared);
  UnitPair<Real> result;
  result.residual = positive_part(magnitude(k) - amplitude);
  const Real rest = root(positive_part((amplitude - k) * (amplitude + k)));
  const Real reached = select(result.residual > 0, select(k < 0, -amplitude, amplitude), k);
  for (int i = 0; i < 2; ++i) result.at[i] = on_circle(a, b, reached, squared, rest, i == 0 ? 1 : -1);
  return result;
}

// Circle and sphere, in a plane: |base + turned(arm)| = distance, for vectors of fixed lengths.
template <typename Real>
ITER_CORE_INLINE UnitPair<Real> circle_to_sphere(const PlanarOf<double>& base, double base_length,
                                                 const PlanarOf<double>& arm, double arm_length, const Real& distance) {
  const double a = base.x * arm.x + base.y * arm.y, b = base.y * arm.x - base.x * arm.y;
  const double longest = base_length + arm_length, product = base_length * arm_length;
  const double shortest = base_length > arm_length ? base_length - arm_length : arm_length - base_length;
  // From whichever end is nearer: no digits are lost where the arm is stretched or folded.
  const Real short_of = positive_part(0.5 * (longest - distance) * (longest + distance));
  const Real above = positive_part(0.5 * (distance - shortest) * (distance + shortest));
  UnitPair<Real> result;
  result.residual = positive_part(distance - longest) + positive_part(shortest - distance);
  const Real k = select(short_of < above, product - short_of, above - product);
  const Real rest = root(short_of * above);
  for (int i = 0; i < 2; ++i) result.at[i] = on_circle(a, b, k, product * product, rest, i == 0 ? 1 : -1);
  return result;
}

// Circle and point, in a plane: the angle that turns `from` into the direction of `to`; not normalised.
template <typename Real>
ITER_CORE_INLINE Unit<Real> circle_to_point(const PlanarOf<Real>& from, const PlanarOf<Real>& to) {
  return {from.x * to.x + from.y * to.y, from.x * to.y - from.y * to.x};
}

template <typename Real>
ITER_CORE_INLINE Real angle_of(const Unit<Real>& unit) {
  return angle_of(unit.s, unit.c);
}

// The same three in space, for a point that turns about a unit axis through the origin.
struct Angles {
  double angle[2] = {0, 0};  // rad
  double residual = 0;       // distance that is left, in the unit of the points
};

// The angle (twice) that brings the turning point nearest to `target`.
Angles circle_to_point(const Eigen::Vector3d& point, const Eigen::Vector3d& axis, const Eigen::Vector3d& target);

// The angles at which the turning point is `radius` away from `centre`, or nearest to that.
Angles circle_to_sphere(const Eigen::Vector3d& point, const Eigen::Vector3d& axis, const Eigen::Vector3d& centre,
                        double radius);

// The angles at which the turning point has normal . x = offset (normal: unit vector), or comes nearest to that.
Angles circle_to_plane(const Eigen::Vector3d& point, const Eigen::Vector3d& axis, const Eigen::Vector3d& normal,
                       double offset);

}  // namespace iter_core
