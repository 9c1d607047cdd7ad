#include "subproblems.hpp"

#include <Eigen/Geometry>
#include <cmath>

namespace iter_core {

namespace {

// The angles at which a * cos + b * sin = c, or comes nearest to it. The root with the larger angle from the
// direction (a, b) counted positively comes first. The residual is in the unit of a, b, c.
TwoAngles solve_cosine(double a, double b, double c) {
  const double squared = a * a + b * b;
  const double amplitude = std::sqrt(squared);
  const double direction = std::atan2(b, a);
  TwoAngles result;
  const double beyond = std::abs(c) - amplitude;
  if (beyond >= 0) {
    result.angle[0] = result.angle[1] = c >= 0 ? direction : std::atan2(-b, -a);
    result.residual = beyond;
    return result;
  }
  const double half = std::atan2(std::sqrt((amplitude - c) * (amplitude + c)), c);
  result.angle[0] = direction + half;
  result.angle[1] = direction - half;
  return result;
}

}  // namespace

Circle::Circle(const Eigen::Vector3d& point, const Eigen::Vector3d& axis) {
  sine = axis.cross(point);
  cosine = sine.cross(axis);
  centre = axis * axis.dot(point);
  radius_squared = sine.squaredNorm();
}

OneAngle circle_to_point(const Circle& circle, const Eigen::Vector3d& target) {
  OneAngle result;
  result.angle = std::atan2(circle.sine.dot(target), circle.cosine.dot(target));
  result.residual =
      (circle.centre + std::cos(result.angle) * circle.cosine + std::sin(result.angle) * circle.sine - target).norm();
  return result;
}

TwoAngles circle_to_sphere(const Circle& circle, const Eigen::Vector3d& centre, double radius) {
  // |x - c|^2 = r^2 is linear in cos and sin, since |x| does not change.
  const double constant = circle.centre.squaredNorm() + circle.radius_squared + centre.squaredNorm();
  const double a = circle.cosine.dot(centre), b = circle.sine.dot(centre), o = circle.centre.dot(centre);
  TwoAngles result = solve_cosine(a, b, 0.5 * (constant - radius * radius) - o);
  if (result.residual > 0) {
    const Eigen::Vector3d nearest =
        circle.centre + std::cos(result.angle[0]) * circle.cosine + std::sin(result.angle[0]) * circle.sine;
    result.residual = std::abs((nearest - centre).norm() - radius);
  }
  return result;
}

TwoAngles circle_to_plane(const Circle& circle, const Eigen::Vector3d& normal, double offset) {
  return solve_cosine(circle.cosine.dot(normal), circle.sine.dot(normal), offset - circle.centre.dot(normal));
}

}  // namespace iter_core
