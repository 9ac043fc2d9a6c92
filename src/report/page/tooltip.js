// One box for all pictures. It never takes the pointer.

const tip = document.getElementById("tip");

function showTip(x, y, title, facts) {
  tip.replaceChildren(
      h("strong", {}, title),
      h("dl", {}, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const gap = 14;
  const left = x + gap + box.width > innerWidth - 8 ? x - gap - box.width : x + gap;
  const top = y + gap + box.height > innerHeight - 8 ? y - gap - box.height : y + gap;
  tip.style.left = Math.min(Math.max(8, left), Math.max(8, innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(8, top) + "px";
}

function hideTip() {
  tip.hidden = true;
}

addEventListener("scroll", hideTip, {passive: true});
addEventListener("keydown", event => {
  if (event.key === "Escape") hideTip();
});
