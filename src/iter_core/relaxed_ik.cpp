#include "relaxed_ik.hpp"

#include <algorithm>
#include <cmath>

namespace iter_core {

RelaxedIk::RelaxedIk(Chain chain, std::vector<std::shared_ptr<Objective>> objectives, RelaxedIkOptions options)
    : kinematics_(std::move(chain)), objectives_(std::move(objectives)), options_(options), qp_(this->chain().size()) {
  const int n = this->chain().size();
  for (Eigen::VectorXd* v : {&lower_, &upper_, &step_lower_, &step_upper_, &step_}) v->setZero(n);
  damped_.setZero(n, n);
  reset(Eigen::VectorXd::Zero(n));
}

void RelaxedIk::reset(const Eigen::VectorXd& q) {
  Eigen::VectorXd inside = q;
  for (int i = 0; i < chain().size(); ++i) {
    inside[i] = std::min(std::max(q[i], chain().joints[i].lower), chain().joints[i].upper);
  }
  history_ = {inside, inside, inside};
  current_.q = inside;
  report_ = RelaxedIkReport();
}

void RelaxedIk::evaluate(const Pose& goal, Point& point) {
  kinematics_.solve(point.q.data(), point.at);
  point.model.clear(chain().size());
  const Situation situation{chain(), point.at, point.q, history_, goal};
  for (const auto& objective : objectives_) {
    if (objective->weight > 0) objective->add(situation, point.model);
  }
  ++report_.evaluations;
}

void RelaxedIk::descend(const Pose& goal, int evaluations) {
  const int n = chain().size();
  double damping = 0;
  while (report_.evaluations < evaluations) {
    for (int i = 0; i < n; ++i) {
      step_lower_[i] = lower_[i] - current_.q[i];
      step_upper_[i] = upper_[i] - current_.q[i];
    }
    damped_ = current_.model.hessian;
    for (int i = 0; i < n; ++i) damped_(i, i) += 1e-6 + damping;
    if (!qp_.solve(damped_, current_.model.gradient, step_lower_, step_upper_, step_)) {
      damping = std::max(10 * damping, 1.0);
      if (damping > 1e12) return;
      continue;
    }
    double longest = 0;
    for (int i = 0; i < n; ++i) longest = std::max(longest, std::abs(step_[i]));
    if (!(longest > 1e-11)) return;
    for (int i = 0; i < n; ++i) {
      candidate_.q[i] = std::min(std::max(current_.q[i] + step_[i], lower_[i]), upper_[i]);
    }
    evaluate(goal, candidate_);
    if (candidate_.model.value < current_.model.value) {
      std::swap(current_, candidate_);
      damping = damping > 1 ? 0.1 * damping : 0;
      if (longest < 1e-7) return;
    } else {
      if (longest < 1e-6) return;  // down to rounding
      damping = std::max(10 * damping, 1.0);
    }
  }
}

const Eigen::VectorXd& RelaxedIk::solve(const Pose& goal) {
  const int n = chain().size();
  for (int i = 0; i < n; ++i) {
    const Joint& joint = chain().joints[i];
    lower_[i] = joint.lower;
    upper_[i] = joint.upper;
    if (options_.period > 0 && joint.velocity > 0) {
      lower_[i] = std::max(lower_[i], history_.last[i] - joint.velocity * options_.period);
      upper_[i] = std::min(upper_[i], history_.last[i] + joint.velocity * options_.period);
    }
  }
  report_.evaluations = 0;
  candidate_.q.resize(n);
  current_.q = history_.last;
  evaluate(goal, current_);
  descend(goal, options_.max_iterations);

  std::swap(history_.third, history_.second);
  std::swap(history_.second, history_.last);
  history_.last = current_.q;
  report_.objective = current_.model.value;
  report_.position_error = (current_.at.tip.position - goal.position).norm();
  const Eigen::Matrix3d difference = current_.at.tip.rotation * goal.rotation.transpose();
  report_.orientation_error = rotation_vector(difference).norm();
  return history_.last;
}

}  // namespace iter_core
