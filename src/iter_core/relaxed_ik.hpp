// RelaxedIK: one joint solution after another, trading accuracy, smoothness and clearance.
#pragma once

#include <Eigen/Core>
#include <memory>
#include <vector>

#include "box_qp.hpp"
#include "chain.hpp"
#include "objectives.hpp"

namespace iter_core {

struct RelaxedIkOptions {
  double period = 0;        // s between two solutions; 0: no bound on joint speed
  int max_iterations = 30;  // evaluations of the objective a solve
};

struct RelaxedIkReport {
  double position_error = 0;     // m
  double orientation_error = 0;  // rad
  double objective = 0;
  int evaluations = 0;
};

class RelaxedIk {
 public:
  RelaxedIk(Chain chain, std::vector<std::shared_ptr<Objective>> objectives, RelaxedIkOptions options);

  // Starts a new stream at q, standing still.
  void reset(const Eigen::VectorXd& q);
  // The next solution (n); never outside the joint limits, nor farther from the last one than speed * period.
  const Eigen::VectorXd& solve(const Pose& goal);

  const RelaxedIkReport& report() const { return report_; }
  const Chain& chain() const { return kinematics_.chain(); }
  std::vector<std::shared_ptr<Objective>>& objectives() { return objectives_; }
  RelaxedIkOptions& options() { return options_; }

 private:
  struct Point {
    Eigen::VectorXd q;
    Kinematics at;
    QuadraticModel model;
  };
  void evaluate(const Pose& goal, Point& point);
  void descend(const Pose& goal, int evaluations);
  bool leave_saddle(const Pose& goal);

  KinematicsSolver kinematics_;
  std::vector<std::shared_ptr<Objective>> objectives_;
  RelaxedIkOptions options_;
  History history_;
  BoxQp qp_;
  Point current_, candidate_;
  Eigen::VectorXd lower_, upper_, step_lower_, step_upper_, step_;
  Eigen::MatrixXd damped_;
  RelaxedIkReport report_;
};

}  // namespace iter_core
