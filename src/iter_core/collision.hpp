// A chain's capsules against each other and against obstacles that come, move and go.
#pragma once

#include <Eigen/Core>
#include <utility>
#include <vector>

#include "chain.hpp"
#include "distances.hpp"

namespace iter_core {

// A capsule that the first `frame` joints of a chain move; its ends are in the frame of the last of them.
struct Body {
  int frame = 0;
  Capsule shape;
};

struct Obstacle {
  int id = 0;
  bool is_box = false;
  Box box;          // if it is one
  Capsule capsule;  // otherwise, in the base's frame
};

// Obstacles in the order in which they came; changing one costs nothing.
class World {
 public:
  int add(Obstacle obstacle);                   // the new id
  bool replace(int id, const Obstacle& moved);  // false if there is no such id
  bool remove(int id);
  const std::vector<Obstacle>& obstacles() const { return obstacles_; }

 private:
  std::vector<Obstacle> obstacles_;
  int next_id_ = 0;
};

// A distance that depends on the chain's joints, of bodies (indices) or of a body and an obstacle (its id).
struct BodyDistance {
  Distance distance;
  int body = -1;
  int other_body = -1;  // -1: an obstacle
  int obstacle = -1;
};

class CollisionModel {
 public:
  // pairs: indices of the bodies that must not touch each other.
  CollisionModel(std::vector<Body> bodies, std::vector<std::pair<int, int>> pairs);

  const std::vector<Body>& bodies() const { return bodies_; }
  const std::vector<std::pair<int, int>>& pairs() const { return pairs_; }

  // Where the bodies are, in the base's frame.
  void place(const Kinematics& at, std::vector<Capsule>& placed) const;
  // Calls visit(BodyDistance) for every pair nearer than `range`, in a fixed order; visit may narrow the range.
  template <typename Visit>
  void visit_pairs(const std::vector<Capsule>& placed, const double& range, Visit visit) const;
  // The same against obstacles, for the bodies that move.
  template <typename Visit>
  void visit_obstacles(const std::vector<Capsule>& placed, const World& world, const double& range, Visit visit) const;
  // The smallest of all; distance is infinite where there is nothing to measure.
  BodyDistance nearest(const Kinematics& at, const World* world) const;
  // Change of a distance per change of each joint.
  void gradient(const Chain& chain, const Kinematics& at, const BodyDistance& distance, double* result) const;

 private:
  std::vector<Body> bodies_;
  std::vector<double> reach_;  // radius of the sphere around each body, about its middle
  std::vector<std::pair<int, int>> pairs_;
};

template <typename Visit>
void CollisionModel::visit_pairs(const std::vector<Capsule>& placed, const double& range, Visit visit) const {
  for (const auto& [a, b] : pairs_) {
    const double limit = reach_[a] + reach_[b] + range;
    const Eigen::Vector3d twice = placed[a].start + placed[a].end - placed[b].start - placed[b].end;
    if (twice.squaredNorm() > 4 * limit * limit) continue;
    BodyDistance found;
    found.distance = capsule_to_capsule(placed[a], placed[b]);
    found.body = a;
    found.other_body = b;
    if (found.distance.distance < range) visit(found);
  }
}

template <typename Visit>
void CollisionModel::visit_obstacles(const std::vector<Capsule>& placed, const World& world, const double& range,
                                     Visit visit) const {
  for (const Obstacle& obstacle : world.obstacles()) {
    for (int a = 0; a < static_cast<int>(bodies_.size()); ++a) {
      if (bodies_[a].frame == 0) continue;
      if (obstacle.is_box && capsule_to_box_bound(placed[a], obstacle.box) > range) continue;
      BodyDistance found;
      found.distance =
          obstacle.is_box ? capsule_to_box(placed[a], obstacle.box) : capsule_to_capsule(placed[a], obstacle.capsule);
      found.body = a;
      found.obstacle = obstacle.id;
      if (found.distance.distance < range) visit(found);
    }
  }
}

}  // namespace iter_core
