"""What other tools and people call the fields of a study."""

ALIASES = {
    name: field
    for field, names in {
        "n_layers": "layers num_layers n_layer depth num_hidden_layers n_blocks",
        "n_heads": "heads num_heads n_head num_attention_heads",
        "d_model": "width dim hidden_size n_embd embedding_size d_embed embed_dim",
        "d_head": "head_dim head_size",
        "d_value": "value_dim",
        "d_mlp": "d_ff mlp_size ffn_dim intermediate_size",
        "feed_forward": "mlp ffn activation act_fn hidden_act",
        "n_ctx": "context context_length context_size block_size seq_len sequence_length max_length n_positions",
        "positions": "pos position_embedding positional_encoding pos_emb",
        "normalization": "norm layer_norm layernorm norm_type",
        "tied_embeddings": "tie tie_weights tie_word_embeddings",
        "attention_window": "window",
        "seed": "seeds random_seed",
        "tokens": "n_tokens num_tokens max_tokens steps n_steps iterations epochs",
        "batch_size": "batch bs",
        "optimizer": "optimiser opt optim",
        "learning_rate": "lr rate eta max_lr",
        "muon_learning_rate": "muon_lr",
        "weight_decay": "wd decay",
        "muon_weight_decay": "muon_wd",
        "warmup_steps": "warmup warmup_iters",
        "gradient_clip": "clip grad_clip max_grad_norm clip_grad",
        "checkpoints": "ckpts saves n_checkpoints",
        "device": "gpu cuda accelerator",
        "precision": "dtype amp",
        "compile": "torch_compile",
        "vocabulary": "vocab vocab_size n_vocab d_vocab",
        "paths": "path file files text data dataset input inputs folder",
        "text_field": "field column key",
        "source": "corpus_name builtin",
        "validation_fraction": "val_fraction valid_fraction test_fraction holdout",
        "question": "description title",
        "jobs": "workers n_jobs parallel",
    }.items()
    for name in names.split()
}
