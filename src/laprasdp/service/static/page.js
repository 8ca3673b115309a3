// A name or a value of the schema goes where the cursor is; without this script the server puts it at the end.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[name=insert]");
  const text = document.getElementById("statement");
  if (!button || !text) return;
  event.preventDefault();
  text.setRangeText(button.value, text.selectionStart, text.selectionEnd, "end");
  text.focus();
});
