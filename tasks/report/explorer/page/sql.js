// The SELECT behind each view, to be pasted into `headstream sql`.

/** @import { Head, Model } from "./study.js" */

const HEADS_OVER_TRAINING = "heads JOIN evaluations USING (model_id, step)";
const PAIR = "writer_layer, writer_head, reader_layer, reader_head, kind";

/** @param {string} text */
function quoted(text) {
  return `'${text.replaceAll("'", "''")}'`;
}

/**
 * @param {string} columns
 * @param {string} table
 * @param {string[]} conditions
 * @param {string} order
 */
function select(columns, table, conditions, order) {
  return `SELECT ${columns}\nFROM ${table}\nWHERE ${conditions.join("\n    AND ")}\nORDER BY ${order}`;
}

/** @param {string} model */
const of = (model) => `model_id = ${quoted(model)}`;

/** @param {Head} head */
const at = (head) => `layer = ${head.layer} AND head = ${head.head}`;

export const sql = {
  /**
   * @param {string} model
   * @param {number} step
   * @param {string} score
   */
  scores: (model, step, score) =>
    select(`layer, head, ${score}`, "heads", [of(model), `step = ${step}`], "layer, head"),
  /** @param {string} model @param {string} score */
  trajectories: (model, score) =>
    select(`step, tokens, layer, head, ${score}`, HEADS_OVER_TRAINING, [of(model)], "layer, head, step"),
  /**
   * @param {{ model: Model, head: Head }[]} curves
   * @param {string} score
   */
  compared: (curves, score) => {
    const heads = curves.map(({ model, head }) => `(${quoted(model.id)}, ${head.layer}, ${head.head})`);
    const condition = `(model_id, layer, head) IN (${heads.join(", ")})`;
    return select(
      `model_id, layer, head, step, tokens, ${score}`,
      HEADS_OVER_TRAINING,
      [condition],
      "model_id, layer, head, step",
    );
  },
  /**
   * @param {string} model
   * @param {Head} head
   * @param {string[]} scores
   */
  trajectory: (model, head, scores) =>
    select(`step, tokens, ${scores.join(", ")}`, HEADS_OVER_TRAINING, [of(model), at(head)], "step"),
  /** @param {string} model @param {Head} head */
  ablations: (model, head) =>
    select(
      "method, loss_effect_nats, ci_low_nats, ci_high_nats",
      "ablations",
      [of(model), at(head), "ablated = 'head' AND scope = 'full'"],
      "method",
    ),
  /** @param {string} model @param {Head} head */
  eigenvalues: (model, head) =>
    select("circuit, real, imaginary", "eigenvalues", [of(model), at(head)], "circuit, rank"),
  /** @param {string} model @param {Head} head */
  skipTrigrams: (model, head) =>
    select(
      "skip_trigram, qk_effect, ov_effect, verdict",
      "skip_trigram_summary",
      [of(model), at(head), "rank < 12"],
      "rank",
    ),
  /** @param {string} model @param {Head} head */
  probes: (model, head) =>
    select("task, accuracy, gain, gain_low, gain_high", "probes", [of(model), at(head)], "gain DESC"),
  /** @param {string} model @param {Head} head */
  importance: (model, head) => select("method, score, rank", "importance", [of(model), at(head)], "method"),
  /** @param {string} model @param {number} step */
  compositions: (model, step) =>
    select(
      `${PAIR}, score, score - sqrt(null_mean) AS above_chance, z, significant`,
      "compositions",
      [of(model), `step = ${step}`],
      "kind, score DESC",
    ),
  /** @param {string} model @param {string} prompts */
  circuitEdges: (model, prompts) =>
    select(
      "writer, reader, port, share, share_low, share_high, score_share, surely_in, in_circuit",
      "circuit_edges",
      [of(model), `prompts = ${quoted(prompts)}`],
      "abs(score_share) DESC",
    ),
  /** @param {string} model @param {string} prompts */
  circuitCurve: (model, prompts) =>
    select(
      "edges_by, draw, n_edges, faithfulness, completeness",
      "circuit_curves",
      [of(model), `prompts = ${quoted(prompts)}`, "pairs = 'judged' AND edges_by IN ('absolute', 'random')"],
      "edges_by, draw, n_edges",
    ),
  /** @param {string} model @param {string} prompts */
  nodeEffects: (model, prompts) =>
    select(
      "node, share, restored_share",
      "node_effects",
      [of(model), `prompts = ${quoted(prompts)}`],
      "abs(share) DESC",
    ),
};
