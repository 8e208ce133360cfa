// What cannot be read on a page that ought to be so wide, each with the word for its fault: wide, cut, beyond the
// window, broken, small (pixels). Rows that are closed are left out.
(wide) => {
  const {clientWidth: window, scrollWidth: content} = document.documentElement, found = new Set();
  if (window !== wide || content > wide) found.add(`wide: ${content} in ${window}`);
  const measure = (text, style, scale = 1) => {
    const size = parseFloat(style.fontSize) * Math.min(scale, 1);
    if (size < 12) found.add(`small: ${text} has ${size}`);
  };
  for (const element of document.body.querySelectorAll("*")) {
    if (!element.checkVisibility() || element.ownerSVGElement) continue;
    // A long name ends in an ellipsis; it is whole in the details.
    if (element.clientWidth && element.scrollWidth > element.clientWidth + 1 && !element.matches(".subject"))
      found.add(`cut: ${element.outerHTML.slice(0, 200)}`);
    const before = getComputedStyle(element, "::before");
    if (before.content !== "none") measure(before.content, before);
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (texts.nextNode()) {
    const text = texts.currentNode, parent = text.parentElement;
    if (!text.data.trim() || !parent.checkVisibility()) continue;
    range.selectNodeContents(text);
    const {left, right} = range.getBoundingClientRect();
    if (left < -1 || right > window + 1) found.add(`beyond: ${text.data}`);
    // A text in a chart is as large as the chart is drawn.
    measure(text.data, getComputedStyle(parent), parent.ownerSVGElement?.getScreenCTM().a);
    // Ordinary words stand on one line: letters between spaces, with a mark after them.
    for (const word of text.data.matchAll(/(?<=^|[\s(])\p{L}{2,30}(?=[\s.,;:)]|$)/gu)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const lines = [...range.getClientRects()].filter(line => line.width).map(line => Math.round(line.top));
      if (new Set(lines).size > 1) found.add(`broken: ${word[0]}`);
    }
  }
  return [...found];
}
