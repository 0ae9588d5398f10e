// What the page carries beside its script: blocks of base64 in elements that no browser runs.

/** @param {string} id */
export function blockBytes(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no block ${id}`);
  const binary = atob((element.textContent ?? "").trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {Uint8Array<ArrayBuffer>} bytes @returns {Promise<Uint8Array<ArrayBuffer>>} */
export async function unzipped(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Little-endian 16-bit floats as 32-bit ones.
 * @param {Uint8Array} bytes
 */
export function floatsOfHalves(bytes) {
  const halves = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const floats = new Float32Array(bytes.byteLength >> 1);
  for (let i = 0; i < floats.length; i++) floats[i] = floatOfHalf(halves.getUint16(2 * i, true));
  return floats;
}

/** @param {number} half the bits of a 16-bit float */
function floatOfHalf(half) {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
