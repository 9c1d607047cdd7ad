// The same arithmetic on one double or on eight at once, with the same bits: what a batch of closed forms runs on.
#pragma once

#include <cmath>
#include <cstdint>

namespace iter_core {

// Eight doubles that the compiler maps onto the vector registers that there are.
constexpr int kLanes = 8;
using Lanes = double __attribute__((vector_size(8 * kLanes)));
using LaneMask = std::int64_t __attribute__((vector_size(8 * kLanes)));

#define ITER_CORE_INLINE inline __attribute__((always_inline))

// A function compiled for several instruction sets, the best picked when the library is loaded. Without contraction of
// a * b + c (see CMakeLists.txt) all give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ITER_CORE_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), flatten))
#else
#define ITER_CORE_CLONES
#endif

ITER_CORE_INLINE double select(bool condition, double yes, double no) { return condition ? yes : no; }
ITER_CORE_INLINE Lanes select(const LaneMask& condition, const Lanes& yes, const Lanes& no) {
  return condition ? yes : no;
}
ITER_CORE_INLINE void spread(double value, double& result) { result = value; }
ITER_CORE_INLINE void spread(double value, Lanes& result) { result = Lanes{} + value; }

ITER_CORE_INLINE double root(double x) { return __builtin_sqrt(x); }
ITER_CORE_INLINE Lanes root(const Lanes& x) {
  Lanes result;
  for (int i = 0; i < kLanes; ++i) result[i] = __builtin_sqrt(x[i]);
  return result;
}

template <typename Real>
ITER_CORE_INLINE Real constant(double value) {
  Real result;
  spread(value, result);
  return result;
}

template <typename Real>
ITER_CORE_INLINE Real magnitude(const Real& x) {
  return select(x < 0, -x, x);
}

template <typename Real>
ITER_CORE_INLINE Real positive_part(const Real& x) {
  return select(x > 0, x, constant<Real>(0));
}

// The angle of (x, y), in [-pi, pi], to about an ulp; 0 where both are 0. Moshier's rational function (Cephes) on
// [-0.42, 0.42], reached by the octant's symmetries and by atan(t) = pi/4 + atan((t - 1) / (t + 1)).
template <typename Real>
ITER_CORE_INLINE Real angle_of(const Real& y, const Real& x) {
  const double low = 6.123233995736765886e-17;  // pi / 2 beyond its double
  const double quarter = 0.78539816339744830962, half = 1.57079632679489661923, whole = 3.14159265358979323846;
  const Real width = magnitude(x), height = magnitude(y);
  const auto steep = height > width;
  const Real larger = select(steep, height, width), smaller = select(steep, width, height);
  const auto far = smaller > 0.41421356237309504880 * larger;
  const Real numerator = select(far, smaller - larger, smaller);
  const Real denominator = select(far, smaller + larger, select(larger > 0, larger, constant<Real>(1)));
  const Real t = numerator / denominator, z = t * t;
  const Real p = (((-8.750608600031904122785e-1 * z - 1.615753718733365076637e1) * z - 7.500855792314704667340e1) * z -
                  1.228866684490136173410e2) *
                     z -
                 6.485021904942025371773e1;
  const Real q =
      ((((z + 2.485846490142306297962e1) * z + 1.650270098316988542046e2) * z + 4.328810604912902668951e2) * z +
       4.853903996359136964868e2) *
          z +
      1.945506571482613964425e2;
  Real angle = t * (z * p / q) + t;
  angle = select(far, quarter + (angle + 0.5 * low), angle);
  angle = select(steep, half - (angle - low), angle);
  angle = select(x < 0, whole - (angle - 2 * low), angle);
  return select(y < 0, -angle, angle);
}

}  // namespace iter_core
