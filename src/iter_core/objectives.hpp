// What RelaxedIK trades off: named, weighted terms, each a groove of a residual's length.
#pragma once

#include <Eigen/Core>
#include <memory>
#include <string>
#include <vector>

#include "chain.hpp"
#include "collision.hpp"
#include "groove.hpp"

namespace iter_core {

// Joint positions of the last three solutions, the newest first.
struct History {
  Eigen::VectorXd last, second, third;
};

// What a term may look at.
struct Situation {
  const Chain& chain;
  const Kinematics& at;
  const Eigen::VectorXd& q;
  const History& history;
  const Pose& goal;
};

// A sum of terms as a quadratic model; of the Hessian only the lower triangle is kept.
struct QuadraticModel {
  double value = 0;
  Eigen::VectorXd gradient;
  Eigen::MatrixXd hessian;
  void clear(int size);
  // Adds stiffness * (r.J) to the gradient and stiffness * J^T.J to the Hessian; rows of J are residual entries.
  void add_rows(double stiffness, const double* residual, const double* rows, int row_count, int columns);
};

class Objective {
 public:
  Objective(std::string name, double weight, Groove groove) : name(std::move(name)), weight(weight), groove(groove) {}
  virtual ~Objective() = default;
  // Adds the term, its gradient and its Gauss-Newton Hessian.
  virtual void add(const Situation& situation, QuadraticModel& model) = 0;
  // Whether it counts on the way to another branch too, where the goal does not: collisions and limits.
  virtual bool guards() const { return false; }

  std::string name;
  double weight;
  Groove groove;
};

// Distance of the tip from the goal, m.
class PositionObjective : public Objective {
 public:
  using Objective::Objective;
  void add(const Situation& situation, QuadraticModel& model) override;

 private:
  std::vector<double> rows_;
};

// Angle between the tip and the goal, rad.
class OrientationObjective : public Objective {
 public:
  using Objective::Objective;
  void add(const Situation& situation, QuadraticModel& model) override;

 private:
  std::vector<double> rows_;
};

// Length of the first, second or third difference of the solutions (velocity, acceleration, jerk), rad a solve.
class SmoothnessObjective : public Objective {
 public:
  SmoothnessObjective(std::string name, double weight, Groove groove, int order)
      : Objective(std::move(name), weight, groove), order_(order) {}
  void add(const Situation& situation, QuadraticModel& model) override;

 private:
  int order_;
};

// How far each joint is into the last `margin` (rad) before its limit.
class JointLimitObjective : public Objective {
 public:
  JointLimitObjective(std::string name, double weight, Groove groove, double margin)
      : Objective(std::move(name), weight, groove), margin_(margin) {}
  void add(const Situation& situation, QuadraticModel& model) override;
  bool guards() const override { return true; }

 private:
  double margin_;
};

// Distance, m, of a point of the chain (the elbow) from a fixed point high above the base.
class AttractionObjective : public Objective {
 public:
  AttractionObjective(std::string name, double weight, Groove groove, int frame, Eigen::Vector3d offset,
                      Eigen::Vector3d target)
      : Objective(std::move(name), weight, groove), frame_(frame), offset_(offset), target_(target) {}
  void add(const Situation& situation, QuadraticModel& model) override;

 private:
  int frame_;               // the joints before it move the point
  Eigen::Vector3d offset_;  // in that frame
  Eigen::Vector3d target_;  // in the base's frame
  std::vector<double> rows_;
};

// How far each pair of the chain's own bodies is inside the last `margin` (m) before contact.
class SelfCollisionObjective : public Objective {
 public:
  SelfCollisionObjective(std::string name, double weight, Groove groove, double margin,
                         std::shared_ptr<const CollisionModel> bodies)
      : Objective(std::move(name), weight, groove), margin_(margin), bodies_(std::move(bodies)) {}
  void add(const Situation& situation, QuadraticModel& model) override;
  bool guards() const override { return true; }

 private:
  double margin_;
  std::shared_ptr<const CollisionModel> bodies_;
  std::vector<Capsule> placed_;
  std::vector<double> row_;
};

// The same between the chain's moving bodies and the obstacles.
class ObstacleObjective : public Objective {
 public:
  ObstacleObjective(std::string name, double weight, Groove groove, double margin,
                    std::shared_ptr<const CollisionModel> bodies, std::shared_ptr<const World> world)
      : Objective(std::move(name), weight, groove),
        margin_(margin),
        bodies_(std::move(bodies)),
        world_(std::move(world)) {}
  void add(const Situation& situation, QuadraticModel& model) override;
  bool guards() const override { return true; }

 private:
  double margin_;
  std::shared_ptr<const CollisionModel> bodies_;
  std::shared_ptr<const World> world_;
  std::vector<Capsule> placed_;
  std::vector<double> row_;
};

}  // namespace iter_core
