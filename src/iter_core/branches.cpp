#include "branches.hpp"

#include <cmath>
#include <stdexcept>

namespace iter_core {

namespace {

constexpr double kTurn = 6.283185307179586;
constexpr int kSpread = 16;

// q plus whole turns: the one nearest to `near` that is within the limits. False if none is.
bool nearest_turn(const Joint& joint, double near, double& q) {
  if (joint.prismatic) return q >= joint.lower && q <= joint.upper;
  q += kTurn * std::round((near - q) / kTurn);
  while (q > joint.upper) q -= kTurn;
  while (q < joint.lower) q += kTurn;
  return q <= joint.upper;
}

}  // namespace

BranchSeeds::BranchSeeds(const Chain& chain) : chain_(&chain) {
  try {
    closed_form_.emplace(chain);
  } catch (const std::invalid_argument&) {
    // Another geometry: seeds are spread instead.
  }
}

std::vector<Eigen::VectorXd> BranchSeeds::seeds(const Pose& goal, const Eigen::VectorXd& q) const {
  const int n = chain_->size();
  std::vector<Eigen::VectorXd> result;
  const auto keep = [&](Eigen::VectorXd seed) {
    for (int j = 0; j < n; ++j) {
      if (!nearest_turn(chain_->joints[j], q[j], seed[j])) return;
    }
    result.push_back(std::move(seed));
  };
  if (closed_form_) {
    ClosedFormSolutions solutions;
    closed_form_->solve(goal, solutions);
    for (int row = 0; row < 8; ++row) {
      if (solutions.exact[row]) keep(Eigen::Map<const Eigen::VectorXd>(solutions.q[row], n));
    }
  } else {
    for (int k = 1; k <= kSpread; ++k) {
      Eigen::VectorXd seed(n);
      for (int j = 0; j < n; ++j) {
        // A Kronecker sequence of the fractional parts of square roots.
        const double share = std::fmod(k * std::sqrt(2.0 + j + (j > 1 ? 1 : 0)), 1.0);
        const Joint& joint = chain_->joints[j];
        const double lower = joint.prismatic ? joint.lower : std::max(joint.lower, q[j] - 0.5 * kTurn);
        const double upper = joint.prismatic ? joint.upper : std::min(joint.upper, q[j] + 0.5 * kTurn);
        seed[j] = lower + share * (upper - lower);
      }
      keep(seed);
    }
  }
  return result;
}

}  // namespace iter_core
