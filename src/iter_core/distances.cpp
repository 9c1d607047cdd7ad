#include "distances.hpp"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

namespace iter_core {

namespace {

using Eigen::Vector3d;

double clamp01(double t) { return std::min(std::max(t, 0.0), 1.0); }

Vector3d any_normal(const Vector3d& v) {
  int smallest = 0;
  if (std::abs(v.y()) < std::abs(v[smallest])) smallest = 1;
  if (std::abs(v.z()) < std::abs(v[smallest])) smallest = 2;
  const Vector3d normal = v.cross(Vector3d::Unit(smallest).eval());
  const double length = normal.norm();
  return length > 0 ? Vector3d(normal / length) : Vector3d::UnitZ();
}

// Parameters of the nearest points of two segments p + s u, q + t v with s, t in [0, 1]; r = p - q.
void nearest_parameters(const Vector3d& u, const Vector3d& v, const Vector3d& r, double& s, double& t) {
  const double a = u.squaredNorm(), e = v.squaredNorm(), f = v.dot(r), c = u.dot(r);
  if (a <= 0 && e <= 0) {
    s = t = 0;
  } else if (a <= 0) {
    s = 0;
    t = clamp01(f / e);
  } else if (e <= 0) {
    t = 0;
    s = clamp01(-c / a);
  } else {
    const double b = u.dot(v), determinant = a * e - b * b;
    if (determinant > 1e-12 * a * e) {
      s = clamp01((b * f - c * e) / determinant);
    } else {
      // Parallel: the middle of the stretch where they run side by side, so that it moves without jumps.
      const double first = clamp01(-c / a), second = clamp01((b - c) / a);
      s = 0.5 * (first + second);
    }
    t = (b * s + f) / e;
    if (t < 0) {
      t = 0;
      s = clamp01(-c / a);
    } else if (t > 1) {
      t = 1;
      s = clamp01((b - c) / a);
    }
  }
}

}  // namespace

Distance capsule_to_capsule(const Capsule& first, const Capsule& second) {
  const Vector3d u = first.end - first.start, v = second.end - second.start;
  double s, t;
  nearest_parameters(u, v, first.start - second.start, s, t);
  const Vector3d a = first.start + s * u, b = second.start + t * v;
  const Vector3d gap = a - b;
  const double length = gap.norm();
  Distance result;
  if (length > 1e-12) {
    result.normal = gap / length;
  } else {
    const Vector3d across = u.cross(v);
    const double size = across.norm();
    result.normal = size > 1e-12 ? Vector3d(across / size) : any_normal(u.squaredNorm() > v.squaredNorm() ? u : v);
  }
  result.distance = length - first.radius - second.radius;
  result.first = a - first.radius * result.normal;
  result.second = b + second.radius * result.normal;
  return result;
}

double capsule_to_box_bound(const Capsule& first, const Box& second) {
  const Vector3d middle = 0.5 * (first.start + first.end) - second.pose.position;
  const double reach = 0.5 * (first.end - first.start).norm() + first.radius;
  double squared = 0;
  for (int i = 0; i < 3; ++i) {
    const double excess = std::max(std::abs(second.pose.rotation.col(i).dot(middle)) - second.half[i], 0.0);
    squared += excess * excess;
  }
  return std::sqrt(squared) - reach;
}

Distance capsule_to_box(const Capsule& first, const Box& second) {
  const Eigen::Matrix3d& rotation = second.pose.rotation;
  const Vector3d start = rotation.transpose() * (first.start - second.pose.position);
  const Vector3d end = rotation.transpose() * (first.end - second.pose.position);
  const Vector3d u = end - start, &h = second.half;

  // The squared distance of the point at t from the box is convex, its slope piecewise linear with breaks where the
  // point crosses a face's plane.
  double breaks[8] = {0, 1};
  int count = 2;
  for (int i = 0; i < 3; ++i) {
    if (u[i] == 0) continue;
    for (const double face : {-h[i], h[i]}) {
      const double t = (face - start[i]) / u[i];
      if (!(t > 0 && t < 1)) continue;
      int place = count++;
      for (; breaks[place - 1] > t; --place) breaks[place] = breaks[place - 1];
      breaks[place] = t;
    }
  }
  const auto slope = [&](double t) {
    double sum = 0;
    for (int i = 0; i < 3; ++i) {
      const double x = start[i] + t * u[i];
      if (x > h[i]) sum += (x - h[i]) * u[i];
      if (x < -h[i]) sum += (x + h[i]) * u[i];
    }
    return sum;
  };
  // From the left up to where the slope is no longer negative, from the right to where it is no longer positive.
  double left = 1, right = 0, before = slope(breaks[0]);
  if (before >= 0) left = 0;
  for (int k = 1; k < count && before < 0; ++k) {
    const double after = slope(breaks[k]);
    if (after >= 0) left = breaks[k - 1] + (breaks[k] - breaks[k - 1]) * (before / (before - after));
    before = after;
  }
  before = slope(breaks[count - 1]);
  if (before <= 0) right = 1;
  for (int k = count - 2; k >= 0 && before > 0; --k) {
    const double after = slope(breaks[k]);
    if (after <= 0) right = breaks[k + 1] + (breaks[k] - breaks[k + 1]) * (before / (before - after));
    before = after;
  }
  double t = clamp01(0.5 * (left + right));
  Vector3d point = start + t * u;
  Vector3d on_box = point.cwiseMax(-h).cwiseMin(h);
  Vector3d normal = point - on_box;
  double distance = normal.norm();
  if (distance > 1e-12) {
    normal /= distance;
  } else {
    // The segment enters the box: the shortest move that takes it out, along a face's normal or square to an edge and
    // the segment (the faces of the two bodies' Minkowski difference).
    double shortest = 1e300;
    for (int i = 0; i < 3; ++i) {
      for (const double sign : {1.0, -1.0}) {
        const bool at_end = sign * end[i] < sign * start[i];
        const double depth = h[i] - sign * (at_end ? end[i] : start[i]);
        if (depth >= shortest) continue;
        shortest = depth;
        normal = sign * Vector3d::Unit(i);
        point = at_end ? end : start;
      }
    }
    for (int i = 0; i < 3; ++i) {
      Vector3d across = u.cross(Vector3d::Unit(i).eval());
      const double length = across.norm();
      if (length <= 1e-9 * u.norm()) continue;
      across /= length;
      if (across.dot(start) < 0) across = -across;
      const double depth = h.dot(across.cwiseAbs()) - across.dot(start);
      if (depth >= shortest - 1e-12) continue;
      shortest = depth;
      normal = across;
      Vector3d corner = h.cwiseProduct(across.cwiseSign());
      corner[i] = -h[i];
      double s, unused;
      nearest_parameters(u, 2 * h[i] * Vector3d::Unit(i), start - corner, s, unused);
      point = start + s * u;
    }
    distance = -shortest;
    on_box = point + shortest * normal;
  }
  Distance result;
  result.distance = distance - first.radius;
  result.normal = rotation * normal;
  result.second = rotation * on_box + second.pose.position;
  result.first = rotation * (point - first.radius * normal) + second.pose.position;
  return result;
}

}  // namespace iter_core
