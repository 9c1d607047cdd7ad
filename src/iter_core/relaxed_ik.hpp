// RelaxedIK: one joint solution after another, trading accuracy, smoothness and clearance.
#pragma once

#include <Eigen/Core>
#include <memory>
#include <vector>

#include "box_qp.hpp"
#include "branches.hpp"
#include "chain.hpp"
#include "objectives.hpp"

namespace iter_core {

struct RelaxedIkOptions {
  double period = 0;         // s between two solutions; 0: no bound on joint speed
  int max_iterations = 30;   // evaluations of the objective a solve
  bool reconfigure = false;  // where no small step helps any more, move to another branch (needs a period)
};

struct RelaxedIkReport {
  double position_error = 0;     // m
  double orientation_error = 0;  // rad
  double objective = 0;
  int evaluations = 0;
  bool reconfiguring = false;  // on the way to another branch
};

class RelaxedIk {
 public:
  RelaxedIk(Chain chain, std::vector<std::shared_ptr<Objective>> objectives, RelaxedIkOptions options);
  RelaxedIk(const RelaxedIk&) = delete;
  RelaxedIk& operator=(const RelaxedIk&) = delete;

  // Starts a new stream at q, standing still.
  void reset(const Eigen::VectorXd& q);
  // The next solution (n); never outside the joint limits, nor farther from the last one than speed * period.
  const Eigen::VectorXd& solve(const Pose& goal);

  const RelaxedIkReport& report() const { return report_; }
  const Chain& chain() const { return kinematics_.chain(); }
  RelaxedIkOptions& options() { return options_; }

 private:
  struct Point {
    Eigen::VectorXd q;
    Kinematics at;
    QuadraticModel model;
  };
  // What the descent minimises over, and from where its smoothness is measured.
  struct Problem {
    const Pose* goal;
    const History* history;
    const Eigen::VectorXd* reference;  // not null: towards these joint positions instead of the goal
  };
  void evaluate(const Problem& problem, Point& point);
  // From current_.q down to a minimum within lower_ and upper_.
  void descend(const Problem& problem);
  void bound_by_limits();
  void bound_by_speed();
  void measure(const Pose& goal, double& position, double& orientation) const;
  bool on_target(const Pose& goal) const;

  // The way to another branch: first one seed a solve is tried, then the joints move to the nearest that works.
  void search(const Pose& goal);
  bool follow_branch(const Pose& goal);
  bool way_is_free(const Pose& goal, const Eigen::VectorXd& to);
  void advance_reference();

  KinematicsSolver kinematics_;
  std::vector<std::shared_ptr<Objective>> objectives_;
  RelaxedIkOptions options_;
  BranchSeeds branches_;
  History history_;
  BoxQp qp_;
  Point current_, candidate_;
  Eigen::VectorXd lower_, upper_, step_lower_, step_upper_, step_;
  Eigen::MatrixXd damped_;
  RelaxedIkReport report_;

  int stalled_ = 0;   // solves in which nothing improved although no speed limit was in the way
  int cooldown_ = 0;  // solves until another search is worth while
  std::vector<Eigen::VectorXd> seeds_;
  size_t next_seed_ = 0;
  bool searching_ = false;
  double best_cost_ = 0;       // of the branches found so far: how long their joints' ways take, s
  Eigen::VectorXd best_;       // the branch; size 0: none yet
  Eigen::VectorXd branch_;     // the branch on the way to, kept on the moving goal
  Eigen::VectorXd reference_;  // runs ahead of the joints towards branch_
  int reconfiguration_solves_ = 0;
  int blocked_solves_ = 0;                // on the way, without coming nearer to branch_
  double nearest_left_ = 0;               // the smallest joint distance from branch_ so far, rad
  std::vector<Eigen::VectorXd> blocked_;  // branches that turned out to be behind something
};

}  // namespace iter_core
