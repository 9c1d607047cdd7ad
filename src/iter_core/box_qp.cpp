#include "box_qp.hpp"

#include <cmath>

namespace iter_core {

BoxQp::BoxQp(int size) : size_(size), bound_(size), factor_(size, size), solution_(size) { free_.reserve(size); }

bool BoxQp::solve_free(const Eigen::MatrixXd& hessian, const Eigen::VectorXd& gradient, const Eigen::VectorXd& x) {
  // Cholesky factorisation of the free block, with the bounded variables on the right-hand side.
  const int m = static_cast<int>(free_.size());
  for (int i = 0; i < m; ++i) {
    const int row = free_[i];
    double right = -gradient[row];
    if (m < size_) {
      for (int k = 0; k < size_; ++k) {
        if (bound_[k] != 0) right -= (k < row ? hessian(row, k) : hessian(k, row)) * x[k];
      }
    }
    for (int j = 0; j <= i; ++j) {
      double sum = hessian(row, free_[j]);
      for (int k = 0; k < j; ++k) sum -= factor_(i, k) * factor_(j, k);
      if (j < i) {
        factor_(i, j) = sum / factor_(j, j);
      } else {
        if (!(sum > 0)) return false;
        factor_(i, i) = std::sqrt(sum);
      }
    }
    for (int k = 0; k < i; ++k) right -= factor_(i, k) * solution_[k];
    solution_[i] = right / factor_(i, i);
  }
  for (int i = m - 1; i >= 0; --i) {
    double sum = solution_[i];
    for (int k = i + 1; k < m; ++k) sum -= factor_(k, i) * solution_[k];
    solution_[i] = sum / factor_(i, i);
  }
  return true;
}

bool BoxQp::solve(const Eigen::MatrixXd& hessian, const Eigen::VectorXd& gradient, const Eigen::VectorXd& lower,
                  const Eigen::VectorXd& upper, Eigen::VectorXd& x) {
  x.setZero();
  for (int i = 0; i < size_; ++i) bound_[i] = 0;
  for (int iteration = 0; iteration < 6 * size_ + 6; ++iteration) {
    free_.clear();
    for (int i = 0; i < size_; ++i) {
      if (bound_[i] == 0) free_.push_back(i);
    }
    if (!solve_free(hessian, gradient, x)) return false;
    // Towards the free minimum, up to the first bound on the way.
    double reach = 1;
    int blocking = -1;
    for (int i = 0; i < static_cast<int>(free_.size()); ++i) {
      const int k = free_[i];
      const double step = solution_[i] - x[k];
      const double room = (step > 0 ? upper[k] : lower[k]) - x[k];
      if (std::abs(step) * reach > std::abs(room)) {
        reach = std::abs(room) / std::abs(step);
        blocking = i;
      }
    }
    for (int i = 0; i < static_cast<int>(free_.size()); ++i) {
      const int k = free_[i];
      if (i == blocking) {
        bound_[k] = solution_[i] > x[k] ? 1 : -1;
        x[k] = bound_[k] > 0 ? upper[k] : lower[k];
      } else {
        x[k] = blocking < 0 ? solution_[i] : x[k] + reach * (solution_[i] - x[k]);
      }
    }
    if (blocking >= 0) continue;
    // At the minimum of this face: leave the bound that pulls inwards the most, or be done.
    int leaving = -1;
    double steepest = 0;
    for (int i = 0; i < size_; ++i) {
      if (bound_[i] == 0) continue;
      double slope = gradient[i];
      for (int k = 0; k < size_; ++k) slope += (k < i ? hessian(i, k) : hessian(k, i)) * x[k];
      const double inwards = bound_[i] > 0 ? slope : -slope;
      if (inwards > steepest) {
        steepest = inwards;
        leaving = i;
      }
    }
    if (leaving < 0) return true;
    bound_[leaving] = 0;
  }
  return true;  // feasible and descending, if not the minimum
}

}  // namespace iter_core
