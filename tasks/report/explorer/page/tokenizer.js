// Byte-pair encoding: text to token ids, as the tokenizer of the corpus does it.

/**
 * @typedef {object} TokenizerFields
 * @property {boolean} bytes whether it is byte-level; else it is sentencepiece's
 * @property {boolean} digits whether each digit is a word of its own
 * @property {string} prefix before every text
 * @property {Record<string, number>} vocabulary
 * @property {[string, string][]} merges
 */

// White space is Unicode's own, not JavaScript's: U+0085 is in it and U+FEFF isn't.
const SPACE = "\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WORD = new RegExp(
  `'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`,
  "gu",
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
    this.fields = fields;
    this.ids = new Map(Object.entries(fields.vocabulary));
    this.ranks = new Map(fields.merges.map((pair, rank) => [pair.join(" "), rank]));
  }

  /** @param {string} text @returns {number[]} */
  encode(text) {
    const whole = text.toWellFormed();
    return this.words(whole)
      .flatMap((signs) => this.merged(signs))
      .flatMap((part) => this.ids.get(part) ?? []);
  }

  /**
   * What is merged by itself, in the signs of the vocabulary.
   * @param {string} text
   * @returns {string[][]}
   */
  words(text) {
    const { bytes, digits, prefix } = this.fields;
    if (!bytes) {
      return text ? [[...(prefix + text.replaceAll(" ", "\u2581"))].flatMap((sign) => this.known(sign))] : [];
    }
    return (digits ? text.split(/(\p{N})/u) : [text])
      .flatMap((part) => [...part.matchAll(WORD)])
      .map(([word]) => [...new TextEncoder().encode(word)].map((byte) => SIGNS[byte]));
  }

  /**
   * A sign, or the bytes that stand for it where it has no token.
   * @param {string} sign
   */
  known(sign) {
    return this.ids.has(sign)
      ? [sign]
      : [...new TextEncoder().encode(sign)].map((byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
  }

  /**
   * Pairs joined, the earliest merge first, until none is left.
   * @param {string[]} parts
   */
  merged(parts) {
    for (;;) {
      let best = Infinity;
      let pair = "";
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
