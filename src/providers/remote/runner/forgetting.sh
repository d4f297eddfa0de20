# shellcheck shell=sh
# forget TAG...: takes away the folders of commands whose reports have arrived, or are not wanted any more. A
# command that still runs does that by itself when it finds the file "forget".
clear() { rm -rf "$_cs_h" "$_cs_h.stop" "$_cs_h.text" "$_cs_h.input" "$_cs_h.env"; }
forget() {
  _cs_x=$_cs_tag
  for _cs_tag do
    if try is_there; then
      true >"$_cs_h/forget"
      [ -s "$_cs_h/end" ] || ! read -r _cs_p <"$_cs_h/pid" || ! kill -0 "$_cs_p" || continue
      clear
    elif try has stop || try has text || try has input || try has env; then
      clear
    fi
  done
  _cs_tag=$_cs_x
}
