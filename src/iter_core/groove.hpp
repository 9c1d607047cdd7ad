// The groove-shaped loss of the RelaxedIK papers (Rakita, Mutlu, Gleicher 2018).
#pragma once

#include <cmath>

namespace iter_core {

// loss(x) = 1 - exp(-x^2 / (2 c^2)) + f x^2: a narrow groove at zero in a wide parabola. Zero at zero.
struct Groove {
  double width = 0.1;      // c, in the unit of x
  double parabola = 10.0;  // f

  // The loss, and its slope divided by x: positive and falling with |x|, so that stiffness / 2 * x^2 bounds the
  // loss from above around where it is evaluated (which is what makes the Gauss-Newton step a descent step).
  void evaluate(double x_squared, double& loss, double& stiffness) const {
    const double inverse = 1 / (width * width);
    const double drop = std::expm1(-0.5 * x_squared * inverse);
    loss = -drop + parabola * x_squared;
    stiffness = (drop + 1) * inverse + 2 * parabola;
  }
};

}  // namespace iter_core
