#include "relaxed_ik.hpp"

#include <algorithm>
#include <cmath>

namespace iter_core {

namespace {

// When the tip counts as off its goal, and for how many solves on end it has to be, standing still, to look elsewhere.
constexpr double kPositionOff = 2e-3;
constexpr double kOrientationOff = 1e-2;
constexpr int kStalledSolves = 20;
// What the collision terms cost in contact, about: weight 2, parabola 1e6, 3 mm of margin.
constexpr double kGuardsInContact = 15;
constexpr int kCooldownSolves = 100;
// A branch works if its own minimum is this near to the goal.
constexpr double kBranchPosition = 5e-4;
constexpr double kBranchOrientation = 2e-3;
// On the way to another branch: share of the joints' speed limits, solves to get up to it, stiffness of the pull.
constexpr double kReconfigurationSpeed = 0.5;
constexpr double kRampSolves = 25;
constexpr double kReferenceStiffness = 6000;
constexpr int kBlockedSolves = 100;  // without coming nearer: something is in the way
constexpr int kWaySamples = 24;      // of the straight way to a branch, where collisions are looked for
constexpr double kDetour = 1000;     // s, what a way that is not free costs
constexpr double kSameBranch = 0.1;  // rad

}  // namespace

RelaxedIk::RelaxedIk(Chain chain, std::vector<std::shared_ptr<Objective>> objectives, RelaxedIkOptions options)
    : kinematics_(std::move(chain)),
      objectives_(std::move(objectives)),
      options_(options),
      branches_(kinematics_.chain()),
      qp_(kinematics_.chain().size()) {
  const int n = this->chain().size();
  for (Eigen::VectorXd* v : {&lower_, &upper_, &step_lower_, &step_upper_, &step_}) v->setZero(n);
  damped_.setZero(n, n);
  candidate_.q.setZero(n);
  reset(Eigen::VectorXd::Zero(n));
}

void RelaxedIk::reset(const Eigen::VectorXd& q) {
  bound_by_limits();
  const Eigen::VectorXd inside = q.cwiseMax(lower_).cwiseMin(upper_);
  history_ = {inside, inside, inside};
  current_.q = inside;
  report_ = RelaxedIkReport();
  stalled_ = cooldown_ = reconfiguration_solves_ = 0;
  searching_ = false;
  blocked_.clear();
}

void RelaxedIk::evaluate(const Problem& problem, Point& point) {
  kinematics_.solve(point.q.data(), point.at);
  point.model.clear(chain().size());
  const Situation situation{chain(), point.at, point.q, *problem.history, *problem.goal};
  for (const auto& objective : objectives_) {
    if (objective->weight > 0 && (problem.reference == nullptr || objective->guards())) {
      objective->add(situation, point.model);
    }
  }
  if (problem.reference != nullptr) {
    for (int i = 0; i < chain().size(); ++i) {
      const double away = point.q[i] - (*problem.reference)[i];
      point.model.value += 0.5 * kReferenceStiffness * away * away;
      point.model.gradient[i] += kReferenceStiffness * away;
      point.model.hessian(i, i) += kReferenceStiffness;
    }
  }
  ++report_.evaluations;
}

void RelaxedIk::descend(const Problem& problem) {
  const int n = chain().size();
  evaluate(problem, current_);
  double damping = 0;
  for (int count = 1; count < options_.max_iterations;) {
    step_lower_ = lower_ - current_.q;
    step_upper_ = upper_ - current_.q;
    damped_ = current_.model.hessian;
    for (int i = 0; i < n; ++i) damped_(i, i) += 1e-6 + damping;
    if (!qp_.solve(damped_, current_.model.gradient, step_lower_, step_upper_, step_)) {
      damping = std::max(10 * damping, 1.0);
      if (!(damping < 1e12)) return;
      continue;
    }
    double longest = 0;
    for (int i = 0; i < n; ++i) longest = std::max(longest, std::abs(step_[i]));
    if (!(longest > 1e-11)) return;
    candidate_.q = (current_.q + step_).cwiseMax(lower_).cwiseMin(upper_);
    evaluate(problem, candidate_);
    ++count;
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

void RelaxedIk::bound_by_limits() {
  for (int i = 0; i < chain().size(); ++i) {
    lower_[i] = chain().joints[i].lower;
    upper_[i] = chain().joints[i].upper;
  }
}

void RelaxedIk::bound_by_speed() {
  bound_by_limits();
  if (!(options_.period > 0)) return;
  for (int i = 0; i < chain().size(); ++i) {
    const double velocity = chain().joints[i].velocity;
    if (!(velocity > 0)) continue;
    lower_[i] = std::max(lower_[i], history_.last[i] - velocity * options_.period);
    upper_[i] = std::min(upper_[i], history_.last[i] + velocity * options_.period);
  }
}

void RelaxedIk::measure(const Pose& goal, double& position, double& orientation) const {
  position = (current_.at.tip.position - goal.position).norm();
  const Eigen::Matrix3d difference = current_.at.tip.rotation * goal.rotation.transpose();
  orientation = rotation_vector(difference).norm();
}

bool RelaxedIk::on_target(const Pose& goal) const {
  double position, orientation;
  measure(goal, position, orientation);
  return position < kBranchPosition && orientation < kBranchOrientation;
}

const Eigen::VectorXd& RelaxedIk::solve(const Pose& goal) {
  report_.evaluations = 0;
  const double before = report_.position_error + 0.5 * report_.orientation_error;
  const bool reconfigure = options_.reconfigure && options_.period > 0;
  if (reconfigure && searching_) search(goal);
  report_.reconfiguring = reconfigure && reconfiguration_solves_ > 0 && follow_branch(goal);

  bound_by_speed();
  current_.q = history_.last;
  if (report_.reconfiguring) {
    advance_reference();
    descend({&goal, &history_, &reference_});
  } else {
    // Off a ridge, where the slope is zero without it being a minimum: a small push, the same every time. In a minimum
    // the descent takes it back.
    if (stalled_ == 2 || stalled_ == 8) {
      for (int i = 0; i < chain().size(); ++i) {
        current_.q[i] = std::min(std::max(current_.q[i] + (i % 2 == 0 ? 2e-3 : -2e-3), lower_[i]), upper_[i]);
      }
    }
    descend({&goal, &history_, nullptr});
  }

  bool at_speed_limit = false;
  for (int i = 0; i < chain().size(); ++i) {
    const double moved = std::abs(current_.q[i] - history_.last[i]);
    at_speed_limit = at_speed_limit || moved > 0.9 * chain().joints[i].velocity * options_.period;
  }
  std::swap(history_.third, history_.second);
  std::swap(history_.second, history_.last);
  history_.last = current_.q;
  report_.objective = current_.model.value;
  measure(goal, report_.position_error, report_.orientation_error);
  const bool off = report_.position_error > kPositionOff || report_.orientation_error > kOrientationOff;
  const bool better = report_.position_error + 0.5 * report_.orientation_error < 0.995 * before;
  stalled_ = off && !better && !report_.reconfiguring && !at_speed_limit ? stalled_ + 1 : 0;
  if (cooldown_ > 0) --cooldown_;
  if (reconfigure && stalled_ >= kStalledSolves && cooldown_ == 0 && !searching_) {
    seeds_ = branches_.seeds(goal, history_.last);
    next_seed_ = 0;
    best_.resize(0);
    searching_ = true;
  }
  return history_.last;
}

void RelaxedIk::search(const Pose& goal) {
  if (next_seed_ < seeds_.size()) {
    const Eigen::VectorXd& seed = seeds_[next_seed_++];
    const History standing{seed, seed, seed};
    bound_by_limits();
    current_.q = seed;
    descend({&goal, &standing, nullptr});
    if (!on_target(goal)) return;
    for (const Eigen::VectorXd& blocked : blocked_) {
      if ((current_.q - blocked).cwiseAbs().maxCoeff() < kSameBranch) return;
    }
    double cost = way_is_free(goal, current_.q) ? 0 : kDetour;
    for (int i = 0; i < chain().size(); ++i) {
      const double velocity = chain().joints[i].velocity > 0 ? chain().joints[i].velocity : 1;
      cost += std::abs(current_.q[i] - history_.last[i]) / velocity;
    }
    if (best_.size() == 0 || cost < best_cost_) {
      best_cost_ = cost;
      best_ = current_.q;
    }
    return;
  }
  searching_ = false;
  cooldown_ = kCooldownSolves;
  if (best_.size() == 0) return;
  branch_ = best_;
  reference_ = history_.last;
  reconfiguration_solves_ = 1;
  nearest_left_ = 1e300;
  blocked_solves_ = 0;
}

bool RelaxedIk::way_is_free(const Pose& goal, const Eigen::VectorXd& to) {
  // With the point itself as the reference only the guards are left in the objective.
  double highest = 0;
  for (int k = 1; k < kWaySamples; ++k) {
    candidate_.q = history_.last + (to - history_.last) * (static_cast<double>(k) / kWaySamples);
    evaluate({&goal, &history_, &candidate_.q}, candidate_);
    highest = std::max(highest, candidate_.model.value);
  }
  return highest < kGuardsInContact;
}

bool RelaxedIk::follow_branch(const Pose& goal) {
  const History standing{branch_, branch_, branch_};
  bound_by_limits();
  current_.q = branch_;
  descend({&goal, &standing, nullptr});
  branch_ = current_.q;
  double left = 0;
  for (int i = 0; i < chain().size(); ++i) left = std::max(left, std::abs(branch_[i] - history_.last[i]));
  blocked_solves_ = left < nearest_left_ - 1e-4 ? 0 : blocked_solves_ + 1;
  nearest_left_ = std::min(nearest_left_, left);
  if (blocked_solves_ > kBlockedSolves) blocked_.push_back(branch_);
  if (!on_target(goal) || left < 1e-3 || blocked_solves_ > kBlockedSolves) {
    reconfiguration_solves_ = 0;
    return false;
  }
  ++reconfiguration_solves_;
  return true;
}

void RelaxedIk::advance_reference() {
  double solves = 0;  // that the slowest joint still needs at cruising speed
  for (int i = 0; i < chain().size(); ++i) {
    const double velocity = chain().joints[i].velocity > 0 ? chain().joints[i].velocity : 1;
    const double step = kReconfigurationSpeed * velocity * options_.period;
    solves = std::max(solves, std::abs(branch_[i] - reference_[i]) / step);
  }
  const double ramp = std::min({1.0, reconfiguration_solves_ / kRampSolves, (solves + 1) / kRampSolves});
  const double share = solves > ramp ? ramp / solves : 1.0;
  reference_ += share * (branch_ - reference_);
}

}  // namespace iter_core
