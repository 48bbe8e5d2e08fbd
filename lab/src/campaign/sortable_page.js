// SPDX-License-Identifier: GPL-2.0-only
// A click on the head of a column sorts its table: numbers by what they are, text by its letters,
// and what has no number last.
"use strict";
for (const table of document.querySelectorAll("table")) {
	const heads = [...table.tHead.rows[0].cells];
	heads.forEach((head, column) => head.addEventListener("click", () => {
		const down = head.dataset.order === "up";
		heads.forEach((other) => delete other.dataset.order);
		head.dataset.order = down ? "down" : "up";
		const numbers = [...table.tBodies[0].rows].some((row) => "value" in row.cells[column].dataset);
		const key = (row) => {
			const cell = row.cells[column];
			if (!numbers)
				return cell.textContent;
			return "value" in cell.dataset ? Number(cell.dataset.value) : down ? -Infinity : Infinity;
		};
		const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
		rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
		table.tBodies[0].append(...rows.map(([, row]) => row));
	}));
}
