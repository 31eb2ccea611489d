// SPDX-License-Identifier: MIT
// Kerberos for the portable dtool: there is none. Debian's libssh.a names these functions of
// GSSAPI, of which Debian has no archive. dtool never calls libssh's functions that reach them:
// logins with Kerberos go through the user's own ssh (docs/connections.md). packages.cmake builds
// this.

namespace {
constexpr unsigned kUnavailable = 16U << 16;  // GSS_S_UNAVAILABLE, RFC 2744, section 3.9.1
}

extern "C" {
void* GSS_C_NT_HOSTBASED_SERVICE = nullptr;
void* GSS_C_NT_USER_NAME = nullptr;
unsigned gss_accept_sec_context(...) {
  return kUnavailable;
}
unsigned gss_acquire_cred(...) {
  return kUnavailable;
}
unsigned gss_add_oid_set_member(...) {
  return kUnavailable;
}
unsigned gss_create_empty_oid_set(...) {
  return kUnavailable;
}
unsigned gss_delete_sec_context(...) {
  return kUnavailable;
}
unsigned gss_display_name(...) {
  return kUnavailable;
}
unsigned gss_display_status(...) {
  return kUnavailable;
}
unsigned gss_get_mic(...) {
  return kUnavailable;
}
unsigned gss_import_name(...) {
  return kUnavailable;
}
unsigned gss_indicate_mechs(...) {
  return kUnavailable;
}
unsigned gss_init_sec_context(...) {
  return kUnavailable;
}
unsigned gss_inquire_cred(...) {
  return kUnavailable;
}
unsigned gss_inquire_cred_by_mech(...) {
  return kUnavailable;
}
unsigned gss_release_buffer(...) {
  return kUnavailable;
}
unsigned gss_release_cred(...) {
  return kUnavailable;
}
unsigned gss_release_name(...) {
  return kUnavailable;
}
unsigned gss_release_oid(...) {
  return kUnavailable;
}
unsigned gss_release_oid_set(...) {
  return kUnavailable;
}
unsigned gss_test_oid_set_member(...) {
  return kUnavailable;
}
unsigned gss_verify_mic(...) {
  return kUnavailable;
}
}
