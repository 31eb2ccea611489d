#include "ssh/job/screen_job.h"

#include <fmt/format.h>

#include "ssh/host_request.h"
#include "ssh/quote.h"
#include "ssh/script.h"
#include "ssh/scripts.h"

namespace dtool::ssh {
Command start_command(const ScreenJob& job, OldLog old_log) {
  std::string text(answer_function());
  text += fmt::format("run_id={}\nsession={}\nstate={}\nlog={}\nfresh_log={}\nbeginning={}\n",
                      quote(job.run_id), quote(job.session), quote_path(job.state_folder),
                      quote_path(job.log), old_log == OldLog::replace ? "yes" : "no",
                      job.beginning == Beginning::told ? "told" : "assumed");
  text += fmt::format("expected={}\n{}", quote(job.host), scripts::kIdentify);
  text += "write_files() {\n";
  if (!job.host.empty()) text += write_file("host", job.host + "\n") + " &&\n";
  for (const auto& [name, content] : job.files) text += write_file(name, content) + " &&\n";
  text += write_file("session", scripts::kSession) + " &&\n" + write_file("script", job.script) +
          "\n}\n";
  text += scripts::kBegin_in_session;
  text += job.begin.empty() ? "begin() { begin_in_session; }\n" : job.begin;
  return bash(text.append(scripts::kStart));
}

std::optional<std::string> read_start(const HostResult& result) {
  if (result.failure != Failure::none) return result.error;
  const auto answers = read_answers(result.out);
  if (const auto error = find_answer(answers, "error"))
    return error->empty() ? "the host failed and did not say why" : *error;
  if (find_answer(answers, "started")) return std::nullopt;
  if (result.exit_code == 127) return "bash is not installed";
  return fmt::format("the start script ended with exit code {}: {}", result.exit_code, result.err);
}

Command follow_command(std::string_view state_folder, std::size_t offset) {
  std::string text(answer_function());
  text += fmt::format("state={}\noffset={}\n", quote_path(state_folder), offset);
  return bash(text.append(scripts::kIdentify).append(scripts::kFollow));
}

Command kill_command(const host::KillRequest& request) {
  return ask_host(request);
}

std::string end_processes_script(std::string_view run_id, std::chrono::milliseconds grace) {
  std::string text(answer_function());
  text += fmt::format("run_id={}\nsessions=()\nstates=()\ngrace={}\nspare=(\"$@\")\n",
                      quote(run_id), grace.count() / 100);
  return text.append(scripts::kKill);
}

}  // namespace dtool::ssh
