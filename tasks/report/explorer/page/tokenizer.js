// Byte-level byte-pair encoding: text to token ids, as the tokenizer of the corpus does it.

/** @typedef {{vocabulary: string[], merges: [string, string][]}} TokenizerFields */

// White space is Unicode's own, not JavaScript's: U+0085 is in it and U+FEFF isn't.
const SPACE = "\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WORD = new RegExp(
  `'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`, "gu",
);
const SIGNS = byteSigns();

/** The character that stands for each byte in a vocabulary: itself where it prints, else one from U+0100 on. */
function byteSigns() {
  const signs = [];
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    signs.push(String.fromCharCode(prints ? byte : next++));
  }
  return signs;
}

export class Tokenizer {
  /** @param {TokenizerFields} fields */
  constructor(fields) {
    this.ids = new Map(fields.vocabulary.map((token, id) => [token, id]));
    this.ranks = new Map(fields.merges.map((pair, rank) => [pair.join(" "), rank]));
  }

  /** @param {string} text @returns {number[]} */
  encode(text) {
    const ids = [];
    for (const [word] of text.toWellFormed().matchAll(WORD)) {
      const signs = [...new TextEncoder().encode(word)].map((byte) => SIGNS[byte]);
      for (const part of this.merged(signs)) {
        const id = this.ids.get(part);
        if (id !== undefined) ids.push(id);
      }
    }
    return ids;
  }

  /** Pairs joined, the earliest merge first, until none is left. @param {string[]} parts */
  merged(parts) {
    for (;;) {
      let best = Infinity, pair = "";
      for (let i = 0; i + 1 < parts.length; i++) {
        const rank = this.ranks.get(`${parts[i]} ${parts[i + 1]}`);
        if (rank !== undefined && rank < best) [best, pair] = [rank, `${parts[i]} ${parts[i + 1]}`];
      }
      if (best === Infinity) return parts;
      const joined = [];
      for (let i = 0; i < parts.length; i++) {
        if (i + 1 < parts.length && `${parts[i]} ${parts[i + 1]}` === pair) joined.push(parts[i] + parts[++i]);
        else joined.push(parts[i]);
      }
      parts = joined;
    }
  }
}
