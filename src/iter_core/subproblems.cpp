#include "subproblems.hpp"

#include <Eigen/Geometry>
#include <cmath>

namespace iter_core {

namespace {

// centre + cos(angle) * cosine + sin(angle) * sine.
struct Circle {
  Circle(const Eigen::Vector3d& point, const Eigen::Vector3d& axis)
      : centre(axis * axis.dot(point)), cosine(point - centre), sine(axis.cross(point)) {}
  Eigen::Vector3d at(double angle) const { return centre + std::cos(angle) * cosine + std::sin(angle) * sine; }
  Eigen::Vector3d centre, cosine, sine;
};

Angles both(const UnitPair<double>& pair) { return {{angle_of(pair.at[0]), angle_of(pair.at[1])}, pair.residual}; }

}  // namespace

Angles circle_to_point(const Eigen::Vector3d& point, const Eigen::Vector3d& axis, const Eigen::Vector3d& target) {
  const Circle circle(point, axis);
  const double angle = angle_of(circle.sine.dot(target), circle.cosine.dot(target));
  return {{angle, angle}, (circle.at(angle) - target).norm()};
}

Angles circle_to_sphere(const Eigen::Vector3d& point, const Eigen::Vector3d& axis, const Eigen::Vector3d& centre,
                        double radius) {
  // |x - c|^2 = r^2 is linear in cos and sin, since |x| does not change.
  const Circle circle(point, axis);
  const double k = 0.5 * (point.squaredNorm() + centre.squaredNorm() - radius * radius) - circle.centre.dot(centre);
  Angles result = both(circle_to_plane<double>(circle.cosine.dot(centre), circle.sine.dot(centre), k));
  if (result.residual > 0) result.residual = std::abs((circle.at(result.angle[0]) - centre).norm() - radius);
  return result;
}

Angles circle_to_plane(const Eigen::Vector3d& point, const Eigen::Vector3d& axis, const Eigen::Vector3d& normal,
                       double offset) {
  const Circle circle(point, axis);
  return both(
      circle_to_plane<double>(circle.cosine.dot(normal), circle.sine.dot(normal), offset - circle.centre.dot(normal)));
}

}  // namespace iter_core
