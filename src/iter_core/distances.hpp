// Signed distances between capsules, spheres and boxes, with the points and the direction that they are measured along.
#pragma once

#include <Eigen/Core>

#include "pose.hpp"

namespace iter_core {

// The ends of a segment and the radius around it, m; a sphere where the ends are the same.
struct Capsule {
  Eigen::Vector3d start, end;
  double radius = 0;
};

// A box about the origin of its pose; half of its size along each axis, m.
struct Box {
  Pose pose;
  Eigen::Vector3d half;
};

// The distance is negative in contact; moving the first body by a small v changes it by normal . v.
struct Distance {
  double distance = 0;
  Eigen::Vector3d first = Eigen::Vector3d::Zero(), second = Eigen::Vector3d::Zero();  // on the surfaces
  Eigen::Vector3d normal = Eigen::Vector3d::UnitZ();                                  // unit, second to first
};

Distance capsule_to_capsule(const Capsule& first, const Capsule& second);

// Where the segment itself is in the box, the depth is that of the shortest move out of it.
Distance capsule_to_box(const Capsule& first, const Box& second);

// A lower bound of the distance, by the sphere around the capsule.
double capsule_to_box_bound(const Capsule& first, const Box& second);

}  // namespace iter_core
