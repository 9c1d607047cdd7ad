// Where else a chain could stand for the same goal: starting points of a search for another branch.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "chain.hpp"
#include "closed_form.hpp"

namespace iter_core {

class BranchSeeds {
 public:
  explicit BranchSeeds(const Chain& chain);
  // Joint positions within the limits, nearest turn to q: the exact branches of the closed form where the chain has
  // one, else points spread evenly over the joint space. The same every time.
  std::vector<Eigen::VectorXd> seeds(const Pose& goal, const Eigen::VectorXd& q) const;

 private:
  const Chain* chain_;
  std::optional<ClosedForm> closed_form_;
};

}  // namespace iter_core
