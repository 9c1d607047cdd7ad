// Closed-form inverse kinematics of arms with axes 2, 3, 4 parallel and axes 5, 6 meeting, by subproblem decomposition.
#pragma once

#include <Eigen/Core>
#include <string>

#include "chain.hpp"
#include "subproblems.hpp"

namespace iter_core {

// Eight branches in the order shoulder (2) x wrist (2) x elbow (2): row = 4 * shoulder + 2 * wrist + elbow.
struct ClosedFormSolutions {
  double q[8][6];            // rad in [-pi, pi]
  bool exact[8];             // the tip is at the target; else the row is the continuous least-squares answer
  double position_error[8];  // m, what a row that is not exact leaves
};

class ClosedForm {
 public:
  // Throws std::invalid_argument, saying which part of the geometry does not fit.
  explicit ClosedForm(const Chain& chain);
  void solve(const Pose& target, ClosedFormSolutions& result) const;
  // For `count` row-major 4 x 4 matrices; q: count x 8 x 6, exact: count x 8. The same bits as one by one.
  void solve_batch(const double* targets, long count, double* q, bool* exact) const;

 private:
  template <typename Real>
  struct Target;
  template <typename Real>
  struct Answer;
  template <typename Real>
  void solve_lanes(const Target<Real>& target, Answer<Real>& answer) const;
  void solve_block(const double* targets, double* q, bool* exact) const;

  using Vector = Eigen::Vector3d;
  using Planar = PlanarOf<double>;
  // A direction that turns with joint 1 (or 5): constant + cos * cosine + sin * sine.
  struct Turning {
    Vector constant, cosine, sine;
  };
  static Turning turning(const Vector& direction, const Vector& axis);
  Planar project(const Vector& v) const { return {plane_x_.dot(v), plane_y_.dot(v)}; }

  Vector axis6_in_tip_, side6_in_tip_;
  Vector wrist_in_tip_;  // where axes 5 and 6 meet, in the tip's frame
  Vector shoulder_;      // a point on axis 1
  Vector normal_, plane_x_, plane_y_;
  Turning normal_turned_, x_turned_, y_turned_;  // by joint 1
  Vector axis6_, side6_;                         // axis 6 and a unit vector normal to it
  double offset_;                                // along the parallel axes, from axis 1 to the wrist
  Planar upper_root_, upper_, fore_, wrist_;     // planar vectors: axis 1 to 2, 2 to 3, 3 to 4, 4 to the wrist
  double upper_length_, fore_length_, longest_, shortest_;
  double sign_[3];  // of axes 2, 3, 4 along the normal
  // Axis 6, side 6 and their cross product turned by joint 5, in (normal, x, y) coordinates.
  Turning axis6_turned_, side6_turned_, cross6_turned_;
  double wrist_a_, wrist_b_, wrist_c_;  // normal . axis6 = a cos q5 + b sin q5 + c
  bool wrist_square_;                   // axis 5 is square to axes 4 and 6
};

}  // namespace iter_core
