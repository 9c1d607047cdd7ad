#include "chain.hpp"

#include <Eigen/Geometry>
#include <cmath>

namespace iter_core {

KinematicsSolver::KinematicsSolver(Chain chain) : chain_(std::move(chain)) {
  for (Joint& joint : chain_.joints) {
    joint.axis.normalize();
    const Eigen::Vector3d& a = joint.axis;
    const Eigen::Matrix3d along = a * a.transpose();
    Eigen::Matrix3d cross;
    cross << 0, -a.z(), a.y(), a.z(), 0, -a.x(), -a.y(), a.x(), 0;
    const Eigen::Matrix3d& r = joint.origin.rotation;
    turns_.push_back({r * along, r * (Eigen::Matrix3d::Identity() - along), r * cross, r * a});
  }
}

void KinematicsSolver::solve(const double* q, Kinematics& result) const {
  const int n = chain_.size();
  result.frames.resize(n + 1);
  result.axes.resize(3, n);
  result.origins.resize(3, n);
  result.frames[0] = Pose();
  for (int i = 0; i < n; ++i) {
    const Joint& joint = chain_.joints[i];
    const Turn& turn = turns_[i];
    const Pose& before = result.frames[i];
    Pose& after = result.frames[i + 1];
    result.axes.col(i).noalias() = before.rotation * turn.axis;
    after.position.noalias() = before.rotation * joint.origin.position;
    after.position += before.position;
    result.origins.col(i) = after.position;
    if (joint.prismatic) {
      after.rotation.noalias() = before.rotation * joint.origin.rotation;
      after.position += q[i] * result.axes.col(i);
    } else {
      const Eigen::Matrix3d local = turn.constant + std::cos(q[i]) * turn.cosine + std::sin(q[i]) * turn.sine;
      after.rotation.noalias() = before.rotation * local;
    }
  }
  result.tip = result.frames[n] * chain_.tip;
}

Eigen::Vector3d point_velocity(const Chain& chain, const Kinematics& at, int joint, const Eigen::Vector3d& point) {
  const Eigen::Vector3d axis = at.axes.col(joint);
  if (chain.joints[joint].prismatic) return axis;
  const Eigen::Vector3d arm = point - at.origins.col(joint);
  return axis.cross(arm);
}

Eigen::Matrix<double, 6, Eigen::Dynamic> jacobian(const Chain& chain, const Kinematics& at) {
  Eigen::Matrix<double, 6, Eigen::Dynamic> result(6, chain.size());
  for (int j = 0; j < chain.size(); ++j) {
    result.col(j).head<3>() = point_velocity(chain, at, j, at.tip.position);
    if (chain.joints[j].prismatic) {
      result.col(j).tail<3>().setZero();
    } else {
      result.col(j).tail<3>() = at.axes.col(j);
    }
  }
  return result;
}

}  // namespace iter_core
