// Follows the node: the page is fetched again and again, and what has changed is put in the place of
// what is there. Without this script the page is the same, but stands still.
"use strict";
(() => {
  const every = 10000;
  let following = true;
  let asked = 0, shown = 0;

  // What is shown is said by the page itself. Only what goes wrong is news to somebody who listens.
  const news = document.createElement("p");
  news.id = "news";
  news.setAttribute("role", "status");

  const button = document.createElement("button");
  button.type = "button";
  button.id = "follow";
  const label = () => { button.textContent = following ? "Stop following the node" : "Follow the node"; };
  button.addEventListener("click", () => {
    following = !following;
    label();
    news.textContent = following ? "" : "This page stands still.";
    if (following) soon();
  });
  label();
  document.querySelector("main").before(button, news);

  // What has the focus keeps it, by its own name or by the place that it links to.
  const place = (element) => {
    if (!element || !element.closest("main")) return null;
    if (element.id) return "#" + CSS.escape(element.id);
    const href = element.getAttribute("href");
    return href ? 'a[href="' + CSS.escape(href) + '"]' : null;
  };

  const follow = async () => {
    const mine = ++asked;
    // Who does not answer is not waited for: until he does, what is shown would be old without a word.
    const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(every) });
    if (!answer.ok) throw new Error("status " + answer.status);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    const now = document.querySelector("main");
    if (!next || !following || mine < shown) return;
    shown = mine;
    const focus = place(document.activeElement);
    const scrolled = new Map([...now.querySelectorAll(".scroll")].map((e) => [e.id, [e.scrollLeft, e.scrollTop]]));
    // A part that is as it was is left alone, with what somebody has marked in it.
    const fresh = [...next.children];
    if (fresh.length !== now.children.length) now.replaceChildren(...fresh);
    else [...now.children].forEach((old, i) => { if (!old.isEqualNode(fresh[i])) old.replaceWith(fresh[i]); });
    for (const e of now.querySelectorAll(".scroll")) [e.scrollLeft, e.scrollTop] = scrolled.get(e.id) || [0, 0];
    if (focus && document.activeElement === document.body) now.querySelector(focus)?.focus({ preventScroll: true });
  };

  const soon = () => {
    if (!following || document.hidden) return;
    follow().then(() => { if (following) news.textContent = ""; }, (why) => {
      news.textContent = "The exporter does not answer (" + why.message + "): what is shown is old.";
    });
  };
  setInterval(soon, every);
  document.addEventListener("visibilitychange", soon);
})();
