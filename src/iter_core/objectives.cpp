#include "objectives.hpp"

#include <algorithm>

namespace iter_core {

namespace {

// One distance that is below the margin: its residual is what is missing.
void add_distance(const Situation& s, const Objective& objective, const CollisionModel& bodies, double margin,
                  const BodyDistance& found, std::vector<double>& row, QuadraticModel& model) {
  const double missing = found.distance.distance - margin;
  double loss, stiffness;
  objective.groove.evaluate(missing * missing, loss, stiffness);
  row.resize(s.chain.size());
  bodies.gradient(s.chain, s.at, found, row.data());
  model.value += objective.weight * loss;
  model.add_rows(objective.weight * stiffness, &missing, row.data(), 1, s.chain.size());
}

}  // namespace

void QuadraticModel::clear(int size) {
  value = 0;
  gradient.setZero(size);
  hessian.setZero(size, size);
}

void QuadraticModel::add_rows(double stiffness, const double* residual, const double* rows, int row_count,
                              int columns) {
  for (int r = 0; r < row_count; ++r) {
    const double* row = rows + r * columns;
    for (int j = 0; j < columns; ++j) {
      const double scaled = stiffness * row[j];
      gradient[j] += scaled * residual[r];
      double* column = hessian.data() + j * hessian.rows();
      for (int i = j; i < columns; ++i) column[i] += scaled * row[i];
    }
  }
}

void PositionObjective::add(const Situation& s, QuadraticModel& model) {
  const int n = s.chain.size();
  const Eigen::Vector3d error = s.at.tip.position - s.goal.position;
  double loss, stiffness;
  groove.evaluate(error.squaredNorm(), loss, stiffness);
  rows_.resize(3 * n);
  for (int j = 0; j < n; ++j) {
    const Eigen::Vector3d column = point_velocity(s.chain, s.at, j, s.at.tip.position);
    for (int r = 0; r < 3; ++r) rows_[r * n + j] = column[r];
  }
  model.value += weight * loss;
  model.add_rows(weight * stiffness, error.data(), rows_.data(), 3, n);
}

void OrientationObjective::add(const Situation& s, QuadraticModel& model) {
  const int n = s.chain.size();
  const Eigen::Matrix3d difference = s.at.tip.rotation * s.goal.rotation.transpose();
  const Eigen::Vector3d error = rotation_vector(difference);
  double loss, stiffness;
  groove.evaluate(error.squaredNorm(), loss, stiffness);
  rows_.resize(3 * n);
  for (int j = 0; j < n; ++j) {
    for (int r = 0; r < 3; ++r) rows_[r * n + j] = s.chain.joints[j].prismatic ? 0 : s.at.axes(r, j);
  }
  model.value += weight * loss;
  model.add_rows(weight * stiffness, error.data(), rows_.data(), 3, n);
}

void SmoothnessObjective::add(const Situation& s, QuadraticModel& model) {
  const int n = s.chain.size();
  const History& h = s.history;
  const auto difference = [&](int i) {
    if (order_ == 1) return s.q[i] - h.last[i];
    if (order_ == 2) return s.q[i] - 2 * h.last[i] + h.second[i];
    return s.q[i] - 3 * h.last[i] + 3 * h.second[i] - h.third[i];
  };
  double squared = 0;
  for (int i = 0; i < n; ++i) squared += difference(i) * difference(i);
  double loss, stiffness;
  groove.evaluate(squared, loss, stiffness);
  model.value += weight * loss;
  for (int i = 0; i < n; ++i) {
    model.gradient[i] += weight * stiffness * difference(i);
    model.hessian(i, i) += weight * stiffness;
  }
}

void JointLimitObjective::add(const Situation& s, QuadraticModel& model) {
  for (int i = 0; i < s.chain.size(); ++i) {
    const Joint& joint = s.chain.joints[i];
    const double margin = std::min(margin_, 0.1 * (joint.upper - joint.lower));
    const double below = joint.lower + margin - s.q[i], above = s.q[i] - (joint.upper - margin);
    const double depth = std::max(below, above);
    if (!(depth > 0)) continue;
    double loss, stiffness;
    groove.evaluate(depth * depth, loss, stiffness);
    model.value += weight * loss;
    model.gradient[i] += weight * stiffness * (below > above ? -depth : depth);
    model.hessian(i, i) += weight * stiffness;
  }
}

void AttractionObjective::add(const Situation& s, QuadraticModel& model) {
  const int n = frame_;
  const Pose& frame = s.at.frames[frame_];
  const Eigen::Vector3d point = frame.rotation * offset_ + frame.position;
  const Eigen::Vector3d error = point - target_;
  double loss, stiffness;
  groove.evaluate(error.squaredNorm(), loss, stiffness);
  rows_.resize(3 * n);
  for (int j = 0; j < n; ++j) {
    const Eigen::Vector3d column = point_velocity(s.chain, s.at, j, point);
    for (int r = 0; r < 3; ++r) rows_[r * n + j] = column[r];
  }
  model.value += weight * loss;
  model.add_rows(weight * stiffness, error.data(), rows_.data(), 3, n);
}

void SelfCollisionObjective::add(const Situation& s, QuadraticModel& model) {
  bodies_->place(s.at, placed_);
  bodies_->visit_pairs(placed_, margin_, [&](const BodyDistance& found) {
    add_distance(s, *this, *bodies_, margin_, found, row_, model);
  });
}

void ObstacleObjective::add(const Situation& s, QuadraticModel& model) {
  if (world_->obstacles().empty()) return;
  bodies_->place(s.at, placed_);
  bodies_->visit_obstacles(placed_, *world_, margin_, [&](const BodyDistance& found) {
    add_distance(s, *this, *bodies_, margin_, found, row_, model);
  });
}

}  // namespace iter_core
