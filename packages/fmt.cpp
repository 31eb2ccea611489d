// SPDX-License-Identifier: MIT
// fmt for the portable dtool: what libfmt.so holds, since Debian has no libfmt.a. packages.cmake
// builds it.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API locale_ref::locale_ref(const std::locale& locale);
template FMT_API void buffer<char>::append(const char* begin, const char* end);
#if FMT_VERSION >= 100000
template FMT_API void vformat_to(buffer<char>&, string_view, typename vformat_args<>::type,
                                 locale_ref);
#endif
}  // namespace detail
FMT_END_NAMESPACE
