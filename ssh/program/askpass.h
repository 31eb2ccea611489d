// What `ssh` asks the user (passwords, one-time codes, passphrases, PINs): each ssh is told to run
// dtool itself for that (SSH_ASKPASS), which hands the prompt to the dtool that waits for the
// connection (asker.h), over a socket in a folder of the user's alone. An answer is never an
// argument, a variable or in a file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dtool::ssh {

/// Whether this process was started by ssh to ask something: by the variable that dtool gives ssh,
/// and the one argument that ssh gives.
bool is_askpass(int argc);

/// The program that ssh runs: prints the answer to `prompt`; 1 if there is none.
int askpass(const std::string& prompt);

/// What ssh needs in its environment so that it asks at the socket `name` of KeptFolder.
std::vector<std::string> askpass_environment(const std::string& name);

/// The first byte of a message to the asking dtool: what the question wants.
namespace askpass_protocol {
constexpr char kSecret = 's';
constexpr char kConfirmation = 'c';
constexpr char kNotice = 'n';  ///< nothing: it is shown until the one who sent it has gone
// The first byte of the answer.
constexpr char kGiven = 'y';
constexpr char kRefused = 'n';
constexpr std::size_t kLongestPrompt = 1000;
}  // namespace askpass_protocol

}  // namespace dtool::ssh
