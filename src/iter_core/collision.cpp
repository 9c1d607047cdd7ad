#include "collision.hpp"

#include <Eigen/Geometry>
#include <algorithm>
#include <limits>

namespace iter_core {

int World::add(Obstacle obstacle) {
  obstacle.id = next_id_++;
  obstacles_.push_back(obstacle);
  return obstacle.id;
}

bool World::replace(int id, const Obstacle& moved) {
  for (Obstacle& obstacle : obstacles_) {
    if (obstacle.id != id) continue;
    obstacle = moved;
    obstacle.id = id;
    return true;
  }
  return false;
}

bool World::remove(int id) {
  const auto found = std::find_if(obstacles_.begin(), obstacles_.end(), [id](const Obstacle& o) { return o.id == id; });
  if (found == obstacles_.end()) return false;
  obstacles_.erase(found);
  return true;
}

CollisionModel::CollisionModel(std::vector<Body> bodies, std::vector<std::pair<int, int>> pairs)
    : bodies_(std::move(bodies)), pairs_(std::move(pairs)) {
  for (const Body& body : bodies_) {
    reach_.push_back(0.5 * (body.shape.end - body.shape.start).norm() + body.shape.radius);
  }
}

void CollisionModel::place(const Kinematics& at, std::vector<Capsule>& placed) const {
  placed.resize(bodies_.size());
  for (size_t i = 0; i < bodies_.size(); ++i) {
    const Pose& frame = at.frames[bodies_[i].frame];
    const Capsule& shape = bodies_[i].shape;
    placed[i].start.noalias() = frame.rotation * shape.start;
    placed[i].start += frame.position;
    placed[i].end.noalias() = frame.rotation * shape.end;
    placed[i].end += frame.position;
    placed[i].radius = shape.radius;
  }
}

BodyDistance CollisionModel::nearest(const Kinematics& at, const World* world) const {
  std::vector<Capsule> placed;
  place(at, placed);
  BodyDistance best;
  best.distance.distance = std::numeric_limits<double>::infinity();
  const auto keep = [&](const BodyDistance& found) {
    if (found.distance.distance < best.distance.distance) best = found;
  };
  visit_pairs(placed, best.distance.distance, keep);
  if (world != nullptr) visit_obstacles(placed, *world, best.distance.distance, keep);
  return best;
}

void CollisionModel::gradient(const Chain& chain, const Kinematics& at, const BodyDistance& d, double* result) const {
  const int n = chain.size(), own = bodies_[d.body].frame;
  const int other = d.other_body < 0 ? 0 : bodies_[d.other_body].frame;
  for (int j = 0; j < n; ++j) {
    double slope = 0;
    // Joints that move both bodies alike do not change the distance.
    if ((j < own) != (j < other)) {
      slope = j < own ? d.distance.normal.dot(point_velocity(chain, at, j, d.distance.first))
                      : -d.distance.normal.dot(point_velocity(chain, at, j, d.distance.second));
    }
    result[j] = slope;
  }
}

}  // namespace iter_core
