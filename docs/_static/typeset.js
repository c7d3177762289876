// Typeset the formulas of the page, which Sphinx writes as \(...\) and \[...\]. Pages without formulas
// do not load KaTeX.
if (window.katex) {
  for (const element of document.querySelectorAll(".math")) {
    const formula = element.textContent.trim().slice(2, -2);
    katex.render(formula, element, { displayMode: element.tagName === "DIV" });
  }
}
