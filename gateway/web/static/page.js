"use strict";
// What the page does with a script. Everything that can be read works without it.

// "/" goes to the search field. In a list of results, arrows move between the titles.
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input, textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !isTyping) {
    const field = document.querySelector('[data-focus="/"]');
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    } else {
      location.href = "/";
    }
  }
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  if (isTyping && event.target.matches("textarea, select")) return;
  const titles = [...document.querySelectorAll("[data-list] .title")];
  if (!titles.length) return;
  const place = titles.indexOf(document.activeElement);
  if (place < 0 && !isTyping) return;
  event.preventDefault();
  const step = event.key === "ArrowDown" ? 1 : -1;
  const next = titles[place + step];
  if (next) next.focus();
  else if (step < 0) document.querySelector('[data-focus="/"]')?.focus();
});
