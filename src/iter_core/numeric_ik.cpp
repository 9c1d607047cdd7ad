#include "numeric_ik.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

namespace iter_core {

namespace {

constexpr double kTurn = 6.283185307179586;
constexpr int kSearchIterations = 60;
constexpr int kFollowIterations = 30;
constexpr double kReach = 0.3;     // m that weigh as much as a rad in the order of the starting points
constexpr double kSame = 1e-4;     // rad between solutions that are one: at a singularity a pose leaves them that free
constexpr double kSameFree = 0.2;  // rad, the same on a chain with joints to spare, whose solutions are a continuum

}  // namespace

NumericIk::NumericIk(const Chain& chain) : kinematics_(chain) {
  const int n = this->chain().size();
  lower_.resize(n);
  upper_.resize(n);
  step_.resize(n);
  damped_.resize(n, n);
  for (int j = 0; j < n; ++j) {
    const Joint& joint = this->chain().joints[j];
    lower_[j] = joint.lower;
    upper_[j] = joint.upper;
    full_turn_.push_back(!joint.prismatic && joint.upper - joint.lower >= kTurn - 1e-9);
  }
}

void NumericIk::measure(const Eigen::VectorXd& q, const Pose& goal, Eigen::Matrix<double, 6, 1>& error) {
  kinematics_.solve(q.data(), at_);
  error.head<3>() = goal.position - at_.tip.position;
  error.tail<3>() = rotation_vector(goal.rotation * at_.tip.rotation.transpose());
}

NumericSolution NumericIk::descend(const Eigen::VectorXd& guess, const Pose& goal, int iterations, bool free_turns) {
  const int n = chain().size();
  Eigen::VectorXd q = guess;
  Eigen::Matrix<double, 6, 1> error;
  NumericSolution best;
  best.position_error = best.orientation_error = std::numeric_limits<double>::infinity();
  for (int count = 0; count < iterations; ++count) {
    measure(q, goal, error);
    const double position = error.head<3>().norm(), orientation = error.tail<3>().norm();
    const double size = position + orientation;
    if (size < best.miss()) {
      best = {q, position, orientation};
    } else if (size < 1e-11) {  // as good as rounding allows
      break;
    }
    if (size < 1e-14) break;
    const auto matrix = jacobian(chain(), at_);
    // The damping shrinks with the error (Sugihara 2011): bounded steps near singularities, quadratic ones at the end.
    damped_.noalias() = matrix.transpose() * matrix;
    for (int j = 0; j < n; ++j) damped_(j, j) += 0.5 * error.squaredNorm() + 1e-12;
    step_.noalias() = matrix.transpose() * error;
    Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factors(damped_);
    factors.solveInPlace(step_);
    for (int j = 0; j < n; ++j) {
      q[j] += step_[j];
      if (!(free_turns && full_turn_[j])) q[j] = std::min(std::max(q[j], lower_[j]), upper_[j]);
    }
  }
  return best;
}

NumericSolution NumericIk::refine(const Eigen::VectorXd& guess, const Pose& goal, int iterations) {
  return descend(guess.cwiseMax(lower_).cwiseMin(upper_), goal, iterations, false);
}

void NumericIk::make_starts(int count) {
  const int n = chain().size();
  // A Kronecker sequence of powers of the root of x^(n + 1) = x + 1 (Roberts): spread evenly whatever the dimension.
  double root = 2;
  for (int k = 0; k < 60; ++k) root = std::pow(1 + root, 1.0 / (n + 1));
  for (int k = static_cast<int>(starts_.size()); k < count; ++k) {
    Start start;
    start.q.resize(n);
    double power = 1;
    for (int j = 0; j < n; ++j) {
      power /= root;
      const double share = std::fmod(0.5 + power * (k + 1), 1.0);
      const double lower = full_turn_[j] ? -0.5 * kTurn : lower_[j], upper = full_turn_[j] ? 0.5 * kTurn : upper_[j];
      start.q[j] = lower + share * (upper - lower);
    }
    kinematics_.solve(start.q.data(), at_);
    start.tip = at_.tip;
    starts_.push_back(std::move(start));
  }
}

bool NumericIk::nearest_turns(const Eigen::VectorXd& near, Eigen::VectorXd& q) const {
  for (int j = 0; j < chain().size(); ++j) {
    if (chain().joints[j].prismatic) continue;
    double value = q[j] + kTurn * std::round((near[j] - q[j]) / kTurn);
    while (value > upper_[j] + 1e-9) value -= kTurn;
    while (value < lower_[j] - 1e-9) value += kTurn;
    if (value > upper_[j] + 1e-9) return false;
    q[j] = std::min(std::max(value, lower_[j]), upper_[j]);
  }
  return true;
}

std::vector<NumericSolution> NumericIk::search(const Pose& goal, const Eigen::VectorXd& near,
                                               const NumericSearch& options) {
  const int n = chain().size();
  make_starts(options.most_starts);
  // The starting points whose pose is nearest come first.
  std::vector<std::pair<double, int>> order;
  for (int k = 0; k < options.most_starts; ++k) {
    const Pose& tip = starts_[k].tip;
    const double turn =
        std::acos(std::clamp(0.5 * ((tip.rotation.transpose() * goal.rotation).trace() - 1), -1.0, 1.0));
    order.emplace_back((tip.position - goal.position).norm() / kReach + turn, k);
  }
  std::sort(order.begin(), order.end());

  std::vector<NumericSolution> exact;
  NumericSolution nearest;
  nearest.position_error = nearest.orientation_error = std::numeric_limits<double>::infinity();
  const double apart = n > 6 ? kSameFree : kSame;
  for (int k = -1; k < options.most_starts; ++k) {
    if (k >= options.starts && !exact.empty()) break;
    NumericSolution found = descend(k < 0 ? near : starts_[order[k].second].q, goal, kSearchIterations, k >= 0);
    if (!nearest_turns(near, found.q)) continue;
    if (!found.exact()) {
      if (found.position_error + 0.1 * found.orientation_error <
          nearest.position_error + 0.1 * nearest.orientation_error) {
        nearest = found;
      }
      continue;
    }
    found = descend(found.q, goal, kFollowIterations, false);
    const auto same = [&](const NumericSolution& other) { return (other.q - found.q).cwiseAbs().maxCoeff() <= apart; };
    if (found.exact() && std::none_of(exact.begin(), exact.end(), same)) exact.push_back(std::move(found));
  }
  if (exact.empty() && nearest.q.size() > 0) exact.push_back(refine(nearest.q, goal, kFollowIterations));
  return exact;
}

int NumericIk::follow(const std::vector<Pose>& goals, const Eigen::VectorXd& start, std::vector<Eigen::VectorXd>& way) {
  Eigen::VectorXd before = start, last = start;
  way.clear();
  for (const Pose& goal : goals) {
    const NumericSolution found = refine(way.empty() ? last : 2 * last - before, goal, kFollowIterations);
    if (!found.exact()) break;
    way.push_back(found.q);
    before = last;
    last = found.q;
  }
  return static_cast<int>(way.size());
}

}  // namespace iter_core
