#include "pose.hpp"

#include <cmath>

namespace iter_core {

Pose operator*(const Pose& a, const Pose& b) {
  Pose result;
  result.rotation.noalias() = a.rotation * b.rotation;
  result.position.noalias() = a.rotation * b.position;
  result.position += a.position;
  return result;
}

Eigen::Vector3d rotation_vector(const Eigen::Matrix3d& r) {
  // Through the quaternion (Shepperd: divide by its largest component), whose half angle atan2 resolves everywhere.
  double w, x, y, z;
  const double trace = r(0, 0) + r(1, 1) + r(2, 2);
  if (trace > r(0, 0) && trace > r(1, 1) && trace > r(2, 2)) {
    w = 1 + trace, x = r(2, 1) - r(1, 2), y = r(0, 2) - r(2, 0), z = r(1, 0) - r(0, 1);
  } else if (r(0, 0) > r(1, 1) && r(0, 0) > r(2, 2)) {
    w = r(2, 1) - r(1, 2), x = 1 + r(0, 0) - r(1, 1) - r(2, 2), y = r(1, 0) + r(0, 1), z = r(2, 0) + r(0, 2);
  } else if (r(1, 1) > r(2, 2)) {
    w = r(0, 2) - r(2, 0), x = r(1, 0) + r(0, 1), y = 1 - r(0, 0) + r(1, 1) - r(2, 2), z = r(2, 1) + r(1, 2);
  } else {
    w = r(1, 0) - r(0, 1), x = r(2, 0) + r(0, 2), y = r(2, 1) + r(1, 2), z = 1 - r(0, 0) - r(1, 1) + r(2, 2);
  }
  Eigen::Vector3d v(x, y, z);
  if (w < 0) v = -v, w = -w;
  const double norm = v.norm();
  if (norm == 0) return Eigen::Vector3d::Zero();
  return v * (2 * std::atan2(norm, w) / norm);
}

}  // namespace iter_core
