// SPDX-License-Identifier: Apache-2.0
// Control calls as spans: traced<point, function> is `function` with a span around it, which names the object that the call is
// about, if the point has an argument for it, and its errno.
#pragma once

#include <cerrno>
#include <cstdint>
#include <type_traits>

#include "cpu/call_span.h"
#include "verbs_frontend/mlx5/srq.h"

namespace verbs::mlx5 {

/// The number by which traces name an object.
inline std::uint64_t number_of(const ibv_pd* o) { return o->handle; }
inline std::uint64_t number_of(const ibv_mr* o) { return o->lkey; }
inline std::uint64_t number_of(const ibv_mw* o) { return o->rkey; }
inline std::uint64_t number_of(const ibv_ah* o) { return o->handle; }
inline std::uint64_t number_of(const ibv_qp* o) { return o->qp_num; }
inline std::uint64_t number_of(ibv_cq* o) { return cq_of(o).cqn; }
inline std::uint64_t number_of(ibv_cq_ex* o) { return cq_of(ibv_cq_ex_to_cq(o)).cqn; }
inline std::uint64_t number_of(ibv_srq* o) { return srq_of(o).srqn; }
inline std::uint64_t number_of(ibv_xrcd* o) { return xrcd_of(o).handle; }

template <class T>
std::uint64_t number_if_any(T* object) {
  if constexpr (requires { number_of(object); }) return number_of(object);
  else return 0;
}

/// Calls return 0 or an errno, or -1 or a null pointer with errno.
inline int error_of(int result) { return result >= 0 ? result : errno; }
inline int error_of(const void* result) { return result != nullptr ? 0 : errno; }

/// Records number and errno, or errno alone if the point has one argument only.
inline void end_call(cpu::CallSpan& call, const sim::trace::Point& point, std::uint64_t number, int error) {
  if (point.args[1] == nullptr) call.end(0, error);
  else call.end(0, number, error);
}

template <const sim::trace::Point& point, class F, class R, class First, class... Rest>
R traced_call(F function, First first, Rest... rest) {
  cpu::CallSpan call(cpu::current(), point);
  if constexpr (std::is_pointer_v<R>) {
    R made = function(first, rest...);
    end_call(call, point, made != nullptr ? number_if_any(made) : 0, error_of(made));
    return made;
  } else {
    const std::uint64_t number = number_if_any(first);  // the object may be gone afterwards
    const R result = function(first, rest...);
    end_call(call, point, number, error_of(result));
    return result;
  }
}

template <const sim::trace::Point& point, auto function, class T = decltype(function)>
struct Traced;
template <const sim::trace::Point& point, auto function, class R, class... A>
struct Traced<point, function, R (*)(A...)> {
  static R call(A... args) { return traced_call<point, decltype(function), R, A...>(function, args...); }
};
template <const sim::trace::Point& point, auto function>
inline constexpr auto traced = &Traced<point, function>::call;

}  // namespace verbs::mlx5
