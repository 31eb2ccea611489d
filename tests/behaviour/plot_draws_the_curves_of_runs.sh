#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dtool plot reads the metrics of runs from their first machine and draws them in the terminal, as JSON and as pictures; what
# cannot be drawn is named.
source "$(dirname "$0")/harness.sh"
needs_program gnuplot
lab 2
mkdir code
cat >code/train.sh <<'END'
cd "$DTOOL_OUTPUT_DIR"
[[ $DTOOL_MACHINE_ID == 0 ]] || exit 0
{
  echo '{"event": "start", "step": 0}'
  for step in 1 2 3 4 5 6 7 8 9; do echo "{\"event\": \"step\", \"step\": $step, \"loss\": 0.$((10 - step)), \"reward\": $step}"; done
  echo '{"event": "start", "step": 8}'
  echo '{"event": "step", "step": 9, "loss": null}'
} >metrics.jsonl
END
cd code
expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" --extra_tag first -- bash train.sh
first=$(basename "$HOME"/.dtool/killfiles/*first*.killfile .killfile)

expect_exit 0 dtool plot
expect_error "^the newest run is $first\$"
expect_output '^ +loss '
expect_output '^ +0\.8┤.*(⣀|⠤|⠒|⠉)'
(($(LC_ALL=C.UTF-8 wc -L <"$out") == 80)) || fail 'not as wide as a terminal'
(($(wc -l <"$out") <= 23)) || fail 'more lines than a terminal has'
# Whatever a host's shell says, it is none of the curves.
on 1 sh -c 'echo "echo {\\\"event\\\":\\\"step\\\",\\\"step\\\":77,\\\"loss\\\":77}" >~/.bashrc'
expect_exit 0 dtool plot "$first" --json --metrics loss
on 1 rm .bashrc
expect_equal "[['loss', 'step', [1, 2, 3, 4, 5, 6, 7, 8, 9], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, None]]]" \
  "$(json "[[c['metric'], c['event'], c['steps'], c['values']] for c in d['curves']]")"

# Several runs, and a file that is here, under one legend.
expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" --extra_tag second -- bash train.sh
second=$(basename "$HOME"/.dtool/killfiles/*second*.killfile .killfile)
printf '{"event":"step","step":%s,"loss":0.5}\n' 1 4 9 >here.jsonl
expect_exit 0 dtool plot "$first" "$second" --file here.jsonl --color always
for line in "1 here.jsonl" "2 $first" "3 $second"; do expect_output "$line"; done
expect_no_error 'newest'

for picture in plot.png plot.svg; do
  expect_exit 0 dtool plot "$first" "$second" --metrics loss,reward --output $picture --size 900x500
  expect_error "^wrote $picture\$"
  [[ ! -s $out ]] || fail 'something is on standard output'
done
[[ $(file --brief plot.png) == 'PNG image data, 900 x 500'* ]] || fail "$(file plot.png)"
python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("plot.svg")'
# Its legend has no character that a font may lack; both axes have names.
expect_equal '' "$(grep -P '[^\x00-\x7F]' plot.svg || true)"
grep -q '<text>loss' plot.svg
grep -q '<text>step' plot.svg
expect_exit 0 dtool plot "$first" "$second" --output plot.pdf
expect_equal '%PDF-' "$(head -c 5 plot.pdf)"
grep -q "$second" plot.svg || fail 'the legend has no name'

# An agent's success, over seconds, each run's from its own start.
for run in 1 2; do
  for ((i = 0; i <= 5; i++)); do
    echo "{\"event\":\"step\",\"time\":$((run * 1000 + run * i)),\"step\":$((i * 100)),\"loss\":1,\"train_success\":0.$((i + run))}"
  done >agent$run.jsonl
done
expect_exit 0 dtool plot --file agent1.jsonl --file agent2.jsonl --x_axis seconds
expect_output '^ +train_success'
expect_output '^   s 0 .*10'
expect_no_output '^ +loss'
expect_exit 0 dtool plot --file agent2.jsonl --json
expect_equal "[['train_success', [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]]]" "$(json "[[c['metric'], c['seconds']] for c in d['curves']]")"

# Mistakes.
expect_exit 2 dtool plot --file here.jsonl --x_axis seconds
expect_error '^dtool: --x_axis seconds: here.jsonl has lines without a time$'
expect_exit 2 dtool plot "$first" --metrics los
expect_error 'there is no metric los$'
expect_error '^hint: did you mean loss\? there are loss, reward$'
expect_exit 2 dtool plot --output plot.gif
expect_error "'plot.gif' ends in none of .svg, .png and .pdf"
expect_exit 2 dtool plot --file nothing.jsonl
expect_error 'nothing\.jsonl'
printf 'epoch 1, loss 0.5\n' >log.txt
expect_exit 2 dtool plot --file here.jsonl --file log.txt
expect_error '^dtool: --file: there are no numbers in log\.txt, whose line 1 is no object'
: >empty.jsonl
expect_exit 2 dtool plot --file empty.jsonl --output empty.png
expect_error '^dtool: --file: there are no numbers in empty\.jsonl$'
expect_no_file empty.png
expect_exit 2 dtool plot --file here.jsonl --output absent/x.png
expect_error '^dtool: cannot write absent/x\.png: No such file or directory$'
expect_exit 2 dtool plot --size 9
mkdir bin
for program in bash env; do ln -s "$(command -v $program)" bin/; done
PATH=$PWD/bin expect_exit 2 "$DTOOL" plot --file here.jsonl --output lost.png
expect_error '^hint: install Debian.s gnuplot-nox'
expect_no_file lost.png

# A run that told nothing, and a host that is gone, take nothing from the others.
expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" --extra_tag silent -- true
silent=$(basename "$HOME"/.dtool/killfiles/*silent*.killfile .killfile)
expect_exit 1 dtool plot "$first" "$silent"
expect_error 'there is no .*/metrics\.jsonl$'
expect_output '^ +loss '
on 1 sh -c 'echo "{\"event\": \"start\", \"step\": 0}" >"$(echo code/experiment_output/*silent*)/metrics.jsonl"'
expect_exit 1 dtool plot "$first" "$silent" --output early.svg
expect_error '^dtool: .*silent.*: no numbers yet$'
expect_file early.svg
on 1 sh -c 'rm code/experiment_output/*silent*/metrics.jsonl'
expect_exit 1 dtool plot "$silent" --json
expect_equal '[] local_program' "$(json "str(d['curves']) + ' ' + d['failures'][0]['failure']")"
