// Inverse kinematics of any chain: damped Gauss-Newton steps from many fixed starting points.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "chain.hpp"

namespace iter_core {

struct NumericSolution {
  Eigen::VectorXd q;             // inside the joint limits
  double position_error = 0;     // m
  double orientation_error = 0;  // rad
  bool exact() const { return position_error < 1e-9 && orientation_error < 1e-9; }
  double miss() const { return position_error + orientation_error; }
};

struct NumericSearch {
  int starts = 64;         // that are always tried, so that every branch is found
  int most_starts = 2048;  // that are tried before a pose counts as out of reach
};

class NumericIk {
 public:
  explicit NumericIk(const Chain& chain);
  const Chain& chain() const { return kinematics_.chain(); }

  // The solution next to `guess`, or the nearest miss on the way; never outside the joint limits.
  NumericSolution refine(const Eigen::VectorXd& guess, const Pose& goal, int iterations);

  // The exact solutions that were found, each joint on the turn nearest to `near`, the one that `near` itself leads to
  // first; else the nearest miss alone. Different ones differ by more than `apart` in some joint. The same every time.
  std::vector<NumericSolution> search(const Pose& goal, const Eigen::VectorXd& near, const NumericSearch& options);

  // From `start` along the goals (count, row-major 4 x 4 by `goal_of`): how many were reached exactly, one after the
  // other; their solutions are in `way`.
  int follow(const std::vector<Pose>& goals, const Eigen::VectorXd& start, std::vector<Eigen::VectorXd>& way);

 private:
  struct Start {
    Eigen::VectorXd q;
    Pose tip;
  };
  // Bounded as the limits say, or with free turns where a joint has a whole one.
  NumericSolution descend(const Eigen::VectorXd& guess, const Pose& goal, int iterations, bool free_turns);
  void make_starts(int count);
  bool nearest_turns(const Eigen::VectorXd& near, Eigen::VectorXd& q) const;
  void measure(const Eigen::VectorXd& q, const Pose& goal, Eigen::Matrix<double, 6, 1>& error);

  KinematicsSolver kinematics_;
  Kinematics at_;
  std::vector<bool> full_turn_;
  Eigen::VectorXd lower_, upper_, step_;
  Eigen::MatrixXd damped_;
  std::vector<Start> starts_;
};

}  // namespace iter_core
