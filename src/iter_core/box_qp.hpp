// A small strictly convex quadratic programme with bounds on its variables.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace iter_core {

// Minimises g.x + x.H.x / 2 subject to lower <= x <= upper (lower <= 0 <= upper), by a primal active set.
class BoxQp {
 public:
  explicit BoxQp(int size);
  // hessian: symmetric positive definite (its lower triangle is read). False if it is not.
  bool solve(const Eigen::MatrixXd& hessian, const Eigen::VectorXd& gradient, const Eigen::VectorXd& lower,
             const Eigen::VectorXd& upper, Eigen::VectorXd& x);

 private:
  bool solve_free(const Eigen::MatrixXd& hessian, const Eigen::VectorXd& gradient, const Eigen::VectorXd& x);
  int size_;
  std::vector<int> free_;
  std::vector<signed char> bound_;  // -1 at the lower bound, 1 at the upper, 0 free
  Eigen::MatrixXd factor_;
  Eigen::VectorXd solution_;  // of the free variables
};

}  // namespace iter_core
