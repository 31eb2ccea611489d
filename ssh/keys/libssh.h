// SPDX-License-Identifier: MIT
// libssh's handles as owners.
#pragma once

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include <memory>
#include <string>
#include <type_traits>

namespace dtool::ssh {

struct SessionFree {
  void operator()(ssh_session session) const {
    ssh_disconnect(session);
    ssh_free(session);
  }
};
struct ChannelFree {
  void operator()(ssh_channel channel) const { ssh_channel_free(channel); }
};
struct KeyFree {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
struct StringFree {
  void operator()(char* text) const { ssh_string_free_char(text); }
};

using SessionHandle = std::unique_ptr<std::remove_pointer_t<ssh_session>, SessionFree>;
using ChannelHandle = std::unique_ptr<std::remove_pointer_t<ssh_channel>, ChannelFree>;
using KeyHandle = std::unique_ptr<std::remove_pointer_t<ssh_key>, KeyFree>;
using StringHandle = std::unique_ptr<char, StringFree>;

}  // namespace dtool::ssh
