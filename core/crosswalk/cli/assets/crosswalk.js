
"use strict";
// Everything is on the page already: this hides what is not asked for, and gathers what is. Text is set as text alone.
const matrix = document.getElementById("matrix");
const controls = document.querySelector(".controls");
const words = controls.querySelector("input[type=search]");
const { state, provider } = controls.elements;
const extensions = controls.querySelector("input[type=checkbox]");
const names = Array.from(matrix.tHead.rows[0].cells, (cell) => cell.textContent);
const tidy = (text) => text.toLowerCase().replace(/\s+/g, " ").trim();

// A field is found by its name, and by the wire paths that lead to it.
const spoken = new Map();
for (const row of document.querySelectorAll(".provider tr[data-f]")) {
  for (const field of row.dataset.f.split(" ")) {
    spoken.set(field, (spoken.get(field) || "") + " " + tidy(row.cells[0].textContent));
  }
}

function sift() {
  const wanted = tidy(words.value).split(" ").filter(Boolean);
  const column = provider.value === "" ? -1 : Number(provider.value) + 1;
  let count = 0;
  for (const body of matrix.tBodies) {
    const isKept = body.classList.contains("kept");
    const isFolded = isKept && !extensions.checked && !wanted.length && state.value !== "x";
    let shown = 0;
    for (const row of body.rows) {
      if (!row.dataset.f) continue;
      const cells = Array.from(row.cells).slice(1);
      const looked = column < 0 ? cells : [cells[column - 1]];
      const text = tidy(row.cells[0].firstChild.textContent) + (spoken.get(row.dataset.f) || "");
      row.hidden = isFolded || !wanted.every((word) => text.includes(word)) ||
        (isKept && column > 0 && looked[0].classList.contains("a")) ||
        (state.value !== "" && !looked.some((cell) => cell.classList.contains(state.value)));
      if (!row.hidden) shown += 1;
    }
    body.hidden = shown === 0;
    count += shown;
  }
  for (const row of matrix.rows) {
    if (row.cells.length < names.length) continue;
    for (let n = 1; n < row.cells.length; n += 1) row.cells[n].hidden = column > 0 && n !== column;
  }
  matrix.classList.toggle("one", column > 0);
  matrix.classList.toggle("lacking", state.value === "a" && column < 0);
  for (const cell of matrix.querySelectorAll(".lacking td.a")) cell.dataset.p = names[cell.cellIndex];
  controls.querySelector("output").textContent = count === 1 ? "1 field" : count + " fields";
  document.getElementById("nothing").hidden = count > 0;
}

const dialog = document.getElementById("shown");

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

// What the tables of a provider say of a field.
function show(field, column, said) {
  const place = document.getElementById("p" + (column - 1));
  dialog.querySelector("h2").textContent = field.cells[0].firstChild.textContent + " · " + names[column];
  dialog.querySelector("p").textContent = said.trim();
  const list = dialog.querySelector("ul");
  list.replaceChildren();
  for (const row of place.querySelectorAll('tr[data-f~="' + field.dataset.f + '"]')) {
    const title = row.closest("details").querySelector("h4").textContent;
    const item = element("li", element("strong", title));
    for (const cell of row.cells) {
      if (!cell.hasChildNodes()) continue;
      const copy = element("span", ...cell.cloneNode(true).childNodes);
      item.append(element("div", element("span", cell.dataset.h), copy));
    }
    list.append(item);
  }
  if (!list.hasChildNodes()) list.append(element("li", "No single leaf says it: the mapping works it out from others."));
  dialog.showModal();
  dialog.scrollTop = 0;
}

matrix.addEventListener("click", (event) => {
  const link = event.target.closest("td a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const cell = link.closest("td");
  show(cell.parentNode, cell.cellIndex, document.querySelector(".legend ." + cell.className).textContent);
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

// A link to a provider opens it.
function open() {
  const place = /^#p\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
  if (place) { place.open = true; place.scrollIntoView(); }
}
addEventListener("hashchange", open);

// The arrows go from mark to mark.
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
matrix.addEventListener("keydown", (event) => {
  const cell = event.target.closest("td");
  if (!cell || !(event.key in STEPS)) return;
  const [down, right] = STEPS[event.key];
  const rows = Array.from(matrix.rows).filter((row) => row.dataset.f && !row.hidden && !row.parentNode.hidden);
  let y = rows.indexOf(cell.parentNode);
  let x = cell.cellIndex;
  for (;;) {
    y += down;
    x += right;
    const link = rows[y] && rows[y].cells[x] && !rows[y].cells[x].hidden && rows[y].cells[x].querySelector("a");
    if (link) { link.focus(); break; }
    if (!rows[y] || x < 1 || x >= names.length) break;
  }
  event.preventDefault();
});

controls.hidden = false;
controls.addEventListener("input", sift);
controls.addEventListener("submit", (event) => event.preventDefault());
sift();
open();
