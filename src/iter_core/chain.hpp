// Serial chains of joints: forward kinematics and Jacobians.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "pose.hpp"

namespace iter_core {

// One joint: its fixed origin in the frame before it, then a motion about (or along) its unit axis.
struct Joint {
  Pose origin;
  Eigen::Vector3d axis = Eigen::Vector3d::UnitZ();
  bool prismatic = false;
  double lower = 0;     // rad (m)
  double upper = 0;     // rad (m)
  double velocity = 0;  // rad/s (m/s)
};

// Joints from the base to the tip; tip is fixed in the last joint's moving frame.
struct Chain {
  std::vector<Joint> joints;
  Pose tip;
  int size() const { return static_cast<int>(joints.size()); }
};

// Where a chain's parts are at some joint positions, in the base's frame.
struct Kinematics {
  std::vector<Pose> frames;                          // n + 1: the base, then the frame that each joint moves
  Eigen::Matrix<double, 3, Eigen::Dynamic> axes;     // 3 x n
  Eigen::Matrix<double, 3, Eigen::Dynamic> origins;  // 3 x n: a point on each axis
  Pose tip;
};

// Forward kinematics with everything in between, evaluated again and again without allocating.
class KinematicsSolver {
 public:
  explicit KinematicsSolver(Chain chain);
  const Chain& chain() const { return chain_; }
  void solve(const double* q, Kinematics& result) const;

 private:
  // Rotation of a joint: constant + cos(q) * cosine + sin(q) * sine.
  struct Turn {
    Eigen::Matrix3d constant, cosine, sine;
    Eigen::Vector3d axis;  // in the frame before the joint
  };
  Chain chain_;
  std::vector<Turn> turns_;
};

// The velocity (3) of a point fixed in frame `frame`, per velocity of joint j (zero for joints after it).
Eigen::Vector3d point_velocity(const Chain& chain, const Kinematics& at, int joint, const Eigen::Vector3d& point);

// Geometric Jacobian of the tip (6 x n): linear velocity over angular velocity, in the base's frame.
Eigen::Matrix<double, 6, Eigen::Dynamic> jacobian(const Chain& chain, const Kinematics& at);

}  // namespace iter_core
