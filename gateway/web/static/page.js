"use strict";
// What the page does with a script. Everything that can be read works without it.

// The answer to an action that is done is shown once: a reload doesn't repeat it.
if (document.querySelector(".answer[data-once]")) {
  const address = new URL(location.href);
  address.searchParams.delete("answer");
  history.replaceState(null, "", address);
}

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
      location.href = "/recall";
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

// While somebody types a line, the page shows how it is understood.
for (const field of document.querySelectorAll("[data-reading]")) {
  const output = document.querySelector(`[data-reading-of="${field.id}"]`);
  let timer = 0;
  let asked = "";
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      asked = field.value;
      const line = asked;
      const response = await fetch(field.dataset.reading + encodeURIComponent(line));
      if (!response.ok || line !== asked) return;
      // The server has escaped the text; it is its own template.
      output.innerHTML = await response.text();
    }, 300);
  });
}
