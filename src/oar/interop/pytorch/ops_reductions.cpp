// Reductions, norms, sorting, sums along an axis.
#include <cmath>
#include <limits>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

using List = std::vector<int64_t>;

// No axes, and an empty list of them, are all axes.
std::optional<IntArgs> axes_in(const List& axes) {
  if (axes.empty()) return std::nullopt;
  return IntArgs(axes);
}

// Sums of integers and flags are int64.
std::optional<DType> sum_type(const Call& c, const Tensor& x) {
  if (c.has("dtype")) return c.dtype("dtype");
  if (is_integral(x.dtype()) || is_bool(x.dtype())) return DType::Int64;
  return std::nullopt;
}
Value sum_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  const List axes = c.list("dim");
  return sum(x, axes_in(axes), sum_type(c, x), c.flag("keepdim"));
}
Value mean_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  const List axes = c.list("dim");
  return mean(c.has("dtype") ? cast(x, *c.dtype("dtype")) : x, axes_in(axes), c.flag("keepdim"));
}
Value product_over(const Call& c) {
  const Tensor& x = c.tensor("self");
  const List axes = c.list("dim");
  return prod(x, axes_in(axes), c.flag("keepdim"), sum_type(c, x));
}

template <Tensor (*function)(const Tensor&, const std::optional<IntArgs>&, bool)>
Value over_axes(const Call& c) {
  const List axes = c.list("dim");
  return function(c.tensor("self"), axes_in(axes), c.flag("keepdim"));
}
template <Tensor (*function)(const Tensor&, const std::optional<IntArgs>&, bool)>
Value over_all(const Call& c) {
  return function(c.tensor("self"), std::nullopt, false);
}

Value extreme_with_places(const Call& c, bool largest) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank());
  if (x.rank() == 0) return c.tuple({x, zeros({}, DType::Int64)});
  const bool keep = c.flag("keepdim");
  const Tensor places =
      largest ? argmax(x, axis, keep, DType::Int64) : argmin(x, axis, keep, DType::Int64);
  const List axes{axis};
  return c.tuple({largest ? max(x, IntArgs(axes), keep) : min(x, IntArgs(axes), keep), places});
}
Value largest_with_places(const Call& c) { return extreme_with_places(c, true); }
Value smallest_with_places(const Call& c) { return extreme_with_places(c, false); }
Value both_extremes(const Call& c) {
  const Tensor& x = c.tensor("self");
  const List axes = c.list("dim");
  const bool keep = c.flag("keepdim");
  return c.tuple({min(x, axes_in(axes), keep), max(x, axes_in(axes), keep)});
}
Value place_of_extreme(const Call& c, bool largest) {
  const Tensor& x = c.tensor("self");
  std::optional<int64_t> axis;
  if (c.has("dim")) axis = c.axis("dim", x.rank());
  const bool keep = c.flag("keepdim");
  return largest ? argmax(x, axis, keep, DType::Int64) : argmin(x, axis, keep, DType::Int64);
}
Value place_of_largest(const Call& c) { return place_of_extreme(c, true); }
Value place_of_smallest(const Call& c) { return place_of_extreme(c, false); }

// ---- variance ----------------------------------------------------------------------------------

double correction_of(const Call& c) {
  if (c.takes("unbiased")) return c.flag("unbiased") ? 1 : 0;
  return c.has("correction") ? c.number("correction") : 1;
}
List axes_of_variance(const Call& c) { return c.takes("dim") ? c.list("dim") : List{}; }
bool keeps(const Call& c) { return c.takes("keepdim") && c.flag("keepdim"); }
Tensor variance_of(const Call& c) {
  const double correction = correction_of(c);
  const List axes = axes_of_variance(c);
  if (correction != 0 && correction != 1) c.refuse(format("its correction is {}", correction));
  return var(c.tensor("self"), axes_in(axes), correction == 1, keeps(c));
}
Tensor mean_with_it(const Call& c) {
  const List axes = axes_of_variance(c);
  return mean(c.tensor("self"), axes_in(axes), keeps(c));
}
Value variance(const Call& c) { return variance_of(c); }
Value deviation(const Call& c) { return sqrt(variance_of(c)); }
Value variance_and_mean(const Call& c) { return c.tuple({variance_of(c), mean_with_it(c)}); }
Value deviation_and_mean(const Call& c) { return c.tuple({sqrt(variance_of(c)), mean_with_it(c)}); }

// ---- norms -------------------------------------------------------------------------------------

Tensor norm_with(const Tensor& x, double order, const List& axes, bool keep) {
  const Tensor size = abs(x);
  if (std::isinf(order))
    return order > 0 ? max(size, axes_in(axes), keep) : min(size, axes_in(axes), keep);
  if (order == 1) return sum(size, axes_in(axes), std::nullopt, keep);
  if (order == 2) return sqrt(sum(square(x), axes_in(axes), std::nullopt, keep));
  if (order == 0)
    return sum(cast(not_equal(x, zeros_like(x)), x.dtype()), axes_in(axes), std::nullopt, keep);
  return pow(sum(pow(size, literal(order)), axes_in(axes), std::nullopt, keep), literal(1 / order));
}
Value norm_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  const double order = c.has("p") ? c.number("p") : 2;
  return norm_with(c.has("dtype") ? cast(x, *c.dtype("dtype")) : x, order, c.list("dim"),
                   c.flag("keepdim"));
}
Value vector_norm(const Call& c) {
  const Tensor& x = c.tensor("self");
  return norm_with(c.has("dtype") ? cast(x, *c.dtype("dtype")) : x, c.number("ord"), c.list("dim"),
                   c.flag("keepdim"));
}

// ---- along an axis -----------------------------------------------------------------------------

Tensor cumulated(const Call& c, Tensor (*function)(const Tensor&, const std::optional<int64_t>&,
                                                   const std::optional<DType>&)) {
  const Tensor& x = c.tensor("self");
  return function(x, c.axis("dim", x.rank()), sum_type(c, x));
}
Value sums_along(const Call& c) { return cumulated(c, cumsum); }
Value products_along(const Call& c) { return cumulated(c, cumprod); }
Value log_sums_along(const Call& c) {
  const Tensor& x = c.tensor("self");
  return logcumsumexp(x, c.axis("dim", x.rank()));
}
Value largest_along(const Call& c) {
  const auto [values, places] = cummax(c.tensor("self"), c.integer("dim"));
  return c.tuple({values, places});
}
Value smallest_along(const Call& c) {
  const auto [values, places] = cummin(c.tensor("self"), c.integer("dim"));
  return c.tuple({values, places});
}
Value top(const Call& c) {
  const Tensor& x = c.tensor("self");
  if (c.integer("k") == 0 && x.rank() > 0) {
    const Tensor none = slice(x, {c.axis("dim", x.rank())}, {0}, {0});
    return c.tuple({none, cast(none, DType::Int64)});
  }
  const auto [values, places] =
      topk(x, c.integer("k"), c.axis("dim", x.rank()), c.flag("largest"), c.flag("sorted"));
  return c.tuple({values, cast(places, DType::Int64)});
}
Value sorted(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank());
  const Tensor places = argsort(x, axis, c.flag("descending"), true);
  return c.tuple({take_along_axis(x, places, axis, false), places});
}
Value sort_order(const Call& c) {
  const Tensor& x = c.tensor("self");
  return argsort(x, c.axis("dim", x.rank()), c.flag("descending"), true);
}
Value kth(const Call& c) {
  const Tensor& x = c.tensor("self");
  const auto [values, places] =
      kthvalue(x, c.integer("k"), c.axis("dim", x.rank()), c.flag("keepdim"));
  return c.tuple({values, places});
}
// The lower one of two in the middle.
Value middle(const Call& c) {
  const Tensor& x = c.tensor("self");
  if (!c.takes("dim")) {
    const Tensor line = reshape(x, {-1});
    return std::get<0>(kthvalue(line, (line.numel().value() + 1) / 2, 0));
  }
  const int64_t axis = c.axis("dim", x.rank());
  const auto [values, places] = kthvalue(x, (x.dim(axis).value() + 1) / 2, axis, c.flag("keepdim"));
  return c.tuple({values, places});
}
Value counted(const Call& c) {
  const List axes = c.list("dim");
  return count_nonzero(c.tensor("self"), axes_in(axes));
}
Value counts_of_values(const Call& c) {
  return bincount(c.tensor("self"), c.maybe("weights"), c.integer("minlength"));
}

constexpr Converter kConverters[] = {
    {"sum(self:Tensor, dim=None, keepdim=False, dtype=None)", sum_of},
    {"mean(self, dim=None, keepdim=False, dtype=None)", mean_of},
    {"prod(self:Tensor, dim=None, keepdim=False, dtype=None)", product_over},
    {"max(self:Tensor)", over_all<max>},
    {"min(self:Tensor)", over_all<min>},
    {"max(self:Tensor, dim:int, keepdim=False)", largest_with_places},
    {"min(self:Tensor, dim:int, keepdim=False)", smallest_with_places},
    {"amax(self, dim=None, keepdim=False)", over_axes<max>},
    {"amin(self, dim=None, keepdim=False)", over_axes<min>},
    {"aminmax(self, dim=None, keepdim=False)", both_extremes},
    {"argmax(self, dim=None, keepdim=False)", place_of_largest},
    {"argmin(self, dim=None, keepdim=False)", place_of_smallest},
    {"any(self:Tensor, dim=None, keepdim=False)", over_axes<any>},
    {"all(self:Tensor, dim=None, keepdim=False)", over_axes<all>},
    {"logsumexp(self, dim, keepdim=False)", over_axes<logsumexp>},
    {"var(self, unbiased:bool=True)", variance},
    {"std(self, unbiased:bool=True)", deviation},
    {"var_mean(self, unbiased:bool=True)", variance_and_mean},
    {"std_mean(self, unbiased:bool=True)", deviation_and_mean},
    {"var(self, dim, unbiased:bool=True, keepdim=False)", variance},
    {"std(self, dim, unbiased:bool=True, keepdim=False)", deviation},
    {"var_mean(self, dim, unbiased:bool=True, keepdim=False)", variance_and_mean},
    {"std_mean(self, dim, unbiased:bool=True, keepdim=False)", deviation_and_mean},
    {"var(self, dim=None, correction=None, keepdim=False)", variance},
    {"std(self, dim=None, correction=None, keepdim=False)", deviation},
    {"var_mean(self, dim=None, correction=None, keepdim=False)", variance_and_mean},
    {"std_mean(self, dim=None, correction=None, keepdim=False)", deviation_and_mean},
    {"norm(self, p=2, dim=None, keepdim=False, dtype=None)", norm_of},
    {"linalg_vector_norm(self, ord=2, dim=None, keepdim=False, dtype=None)", vector_norm},
    {"cumsum(self, dim, dtype=None)", sums_along},
    {"cumprod(self, dim, dtype=None)", products_along},
    {"logcumsumexp(self, dim)", log_sums_along},
    {"cummax(self, dim)", largest_along},
    {"cummin(self, dim)", smallest_along},
    {"topk(self, k, dim=-1, largest=True, sorted=True)", top},
    {"sort(self:Tensor, dim:int=-1, descending=False, stable=None)", sorted},
    {"sort(self:Tensor, stable, dim, descending)", sorted},
    {"argsort(self:Tensor, dim=-1, descending=False, stable=None)", sort_order},
    {"kthvalue(self, k, dim=-1, keepdim=False)", kth},
    {"median(self)", middle},
    {"median(self, dim, keepdim=False)", middle},
    {"count_nonzero(self, dim=None)", counted},
    {"bincount(self, weights=None, minlength=0)", counts_of_values},
};

}  // namespace

std::span<const Converter> reduction_converters() { return kConverters; }

}  // namespace oar::pytorch
