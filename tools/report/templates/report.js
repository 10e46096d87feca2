// SPDX-License-Identifier: Apache-2.0
// Tables sort by a column's heading; without this script they are in the order of the points. Folded parts open for printing.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const original = [...body.rows];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const numeric = head.classList.contains("number");
    const key = (row) => {
      const cell = row.cells[column];
      const value = cell.dataset.value ?? cell.textContent;
      return numeric ? (value === "" || Number.isNaN(Number(value)) ? null : Number(value)) : value;
    };
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
      const keyed = original.map((row) => [key(row), row]);
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return direction * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
      });
      body.append(...keyed.map(([, row]) => row));
    });
  });
}
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open])")) {
    if (part.closest("#scenario")) continue;
    part.open = true;
    part.dataset.opened = "";
  }
});
addEventListener("afterprint", () => {
  for (const part of document.querySelectorAll("details[data-opened]")) {
    part.open = false;
    delete part.dataset.opened;
  }
});
