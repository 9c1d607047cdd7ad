// Canonical subproblems of inverse kinematics; each says whether its answer is exact or the least-squares one.
#pragma once

#include <Eigen/Core>

namespace iter_core {

// A point that turns about a unit axis through the origin: centre + cos(angle) * cosine + sin(angle) * sine.
struct Circle {
  Circle(const Eigen::Vector3d& point, const Eigen::Vector3d& axis);
  Eigen::Vector3d centre, cosine, sine;
  double radius_squared;
};

struct OneAngle {
  double angle = 0;     // rad
  double residual = 0;  // distance that is left (unit of the points)
};

struct TwoAngles {
  double angle[2] = {0, 0};  // rad; the same twice where circle and target only touch, or miss
  double residual = 0;       // distance that is left
};

// Circle and point: the angle that brings the turning point nearest to `target`.
OneAngle circle_to_point(const Circle& circle, const Eigen::Vector3d& target);

// Circle and sphere about `centre`: the angles at which the turning point is `radius` away from it, or nearest to that.
TwoAngles circle_to_sphere(const Circle& circle, const Eigen::Vector3d& centre, double radius);

// Circle and plane: the angles at which the turning point has normal . x = offset, or comes nearest to that.
TwoAngles circle_to_plane(const Circle& circle, const Eigen::Vector3d& normal, double offset);

}  // namespace iter_core
