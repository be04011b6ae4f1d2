"use strict";
// The chat: the answer appears while it's written. Without a script, the page loads again when the answer is there.
const chat = document.getElementById("chat");
if (chat) {
  const talk = document.getElementById("talk");
  const state = document.getElementById("state");
  const field = document.getElementById("text");

  // The last messages are in sight, unless the answer to an action is above them. Pictures that are
  // loaded later push them down, so the page scrolls again until the person does something.
  let isUntouched = !document.querySelector(".answer");
  const showEnd = () => isUntouched && window.scrollTo(0, document.body.scrollHeight);
  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    window.addEventListener(kind, () => (isUntouched = false), { once: true, passive: true });
  }
  for (const picture of talk.querySelectorAll("img")) picture.addEventListener("load", showEnd);
  showEnd();

  function addMessage(role, name) {
    const article = document.createElement("article");
    article.className = `message ${role}`;
    const meta = document.createElement("p");
    meta.className = "meta";
    meta.textContent = name;
    const body = document.createElement("div");
    body.className = "said";
    body.dir = "auto";
    article.append(meta, body);
    talk.append(article);
    return body;
  }

  function makeFile(file) {
    const line = document.createElement("p");
    line.className = "files";
    if (file.is_picture) {
      const picture = document.createElement("img");
      picture.src = file.link;
      picture.alt = file.name;
      line.append(picture);
    }
    const link = document.createElement("a");
    link.href = file.link;
    link.download = file.name;
    link.textContent = file.name;
    line.append(link);
    return line;
  }

  async function send(text) {
    const fields = new URLSearchParams(new FormData(chat));
    fields.set("text", text);
    chat.querySelector('[name="session"]')?.remove();
    const own = addMessage("user", talk.dataset.you);
    own.textContent = text;
    const bodies = new Map();
    const bodyOf = (reply) => {
      if (!bodies.has(reply)) bodies.set(reply, addMessage("assistant", talk.dataset.assistant));
      return bodies.get(reply);
    };
    state.textContent = "…";
    const request = { method: "POST", body: fields, headers: { Accept: "application/x-ndjson" } };
    const response = await fetch("/chat/send", request).catch(() => null);
    const takeBack = () => {
      own.parentElement.remove();
      field.value = field.value || text;
    };
    if (!response?.ok) {
      // Nothing was sent, such as after a logout in another tab. The text stays in its field.
      takeBack();
      const page = new DOMParser().parseFromString((await response?.text()) ?? "", "text/html");
      state.textContent = page.querySelector("main h1 + *")?.textContent ?? "⚠";
      return;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      rest += value ?? "";
      const lines = rest.split("\n");
      rest = lines.pop();
      for (const line of lines.filter(Boolean)) {
        const event = JSON.parse(line);
        if (event.kind === "refused") {
          takeBack();
          state.innerHTML = event.html;
          return;
        }
        show(event, bodyOf);
      }
      if (done) break;
    }
    state.textContent = "";
  }

  function show(event, bodyOf) {
    if (event.kind === "tools") {
      state.textContent = event.text;
      return;
    }
    const body = bodyOf(event.reply);
    if (event.kind === "text") body.textContent = event.text;
    else {
      // The server has rendered and escaped it.
      body.className = "";
      body.innerHTML = event.html;
      for (const file of event.files) body.append(makeFile(file));
      for (const [label, typed] of event.buttons) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = label;
        button.addEventListener("click", () => send(typed));
        body.append(button, " ");
      }
    }
    body.scrollIntoView({ block: "nearest" });
  }

  chat.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    field.value = "";
    send(text).catch(() => {
      state.textContent = "";
      location.reload();
    });
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      chat.requestSubmit();
    }
  });
}
