// Follows an order by server-sent events, and shows each state. The page is whole without it.
"use strict";

(function () {
  const order = document.getElementById("order");
  if (!order || !order.dataset.events || !window.EventSource) {
    return;
  }
  const headline = document.getElementById("headline");
  const link = document.getElementById("link");
  const steps = Array.from(order.querySelectorAll(".steps li"));

  function say(text) {
    link.textContent = text;
    link.hidden = text === "";
  }

  function stateOf(n, news) {
    if (n < news.done) {
      return ["done", "done"];
    }
    if (news.refused) {
      return ["off", "cancelled"];
    }
    return n === news.done ? ["now", "under way"] : ["later", ""];
  }

  function show(news) {
    if (headline.textContent !== news.headline) {
      headline.textContent = news.headline; // a screen reader says what changes here
      document.title = news.headline + " · The shop";
    }
    headline.classList.toggle("bad", news.refused);
    headline.classList.toggle("good", news.done === steps.length);
    steps.forEach(function (step, n) {
      const [state, mark] = stateOf(n, news);
      step.className = state;
      step.querySelector(".mark").textContent = mark;
      if (state === "now") {
        step.setAttribute("aria-current", "step");
      } else {
        step.removeAttribute("aria-current");
      }
    });
  }

  const source = new EventSource(order.dataset.events);
  source.addEventListener("open", function () {
    say("This page follows the order by itself.");
  });
  source.addEventListener("error", function () {
    say(source.readyState === EventSource.CLOSED
      ? "This page no longer follows the order. Load it again to see changes."
      : "The connection was lost; trying again…");
  });
  source.addEventListener("state", function (event) {
    const news = JSON.parse(event.data);
    show(news);
    if (news.over) {
      source.close();
      say("");
    }
  });
})();
