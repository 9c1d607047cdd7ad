// Rigid transforms as a rotation and a translation, and the rotation vector of a rotation.
#pragma once

#include <Eigen/Core>

namespace iter_core {

// A rigid transform: x -> rotation * x + position (metres).
struct Pose {
  Eigen::Matrix3d rotation = Eigen::Matrix3d::Identity();
  Eigen::Vector3d position = Eigen::Vector3d::Zero();
};

// a then b, as matrices a * b.
Pose operator*(const Pose& a, const Pose& b);

// The rotation vector (axis times angle, rad, angle in [0, pi]) of a rotation matrix; accurate near 0 and near pi.
Eigen::Vector3d rotation_vector(const Eigen::Matrix3d& rotation);

}  // namespace iter_core
