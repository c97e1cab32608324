"""Sentences of the layer map, and of what changed since the one before. Part of `wording.TABLE`: kind -> (English, Chinese)."""

LAYER_MAP: dict[str, tuple[str, str]] = {
    # --- the map ---
    "map_title": ("Layer map", "层映射"),
    "map_counts": (
        "{rows} places and {weights} weights are joined; {gaps} stand on one side only or could not be joined.",
        "已对应 {rows} 个边界与 {weights} 个权重；{gaps} 个只在一侧，或无法对应。",
    ),
    "map_tokens": (
        "Tokens: {joined} are joined, of {train} on train and {infer} on infer.",
        "Token：已对应 {joined} 个（train 共 {train} 个，infer 共 {infer} 个）。",
    ),
    "map_start": ("Inputs and embedding", "输入与嵌入"),
    "map_layer": ("Layer {layer}", "第 {layer} 层"),
    "map_end": ("After the layers", "各层之后"),
    "map_place": ("place", "位置"),
    "map_weight": ("weight", "权重"),
    "map_train": ("train", "train"),
    "map_infer": ("infer", "infer"),
    "map_basis": ("joined by", "依据"),
    "map_confidence": ("confidence", "置信度"),
    "map_note": ("note", "说明"),
    "map_list": ("{items}", "{items}"),
    "map_not_compared": ("not compared: {why}", "不比较：{why}"),
    "map_unmapped": ("In no row", "不在任何一行中"),
    "map_unmapped_why": (
        "Recorded tensors that no row names and that equal nothing that a row names: nothing was found for them on the other side.",
        "没有任何一行提到、也不等于任何一行所提到的张量或值的已记录张量：在另一侧没有找到对应物。",
    ),
    # --- what changed ---
    "map_changed": ("Changed since the mapping that stood here before", "与此处先前的映射相比的变化"),
    "row_changed": ("{boundary}: {side} was {before}, is {after}", "{boundary}：{side} 原为 {before}，现为 {after}"),
    "row_new": ("{boundary}: new", "{boundary}：新增"),
    "row_gone": ("{boundary}: gone", "{boundary}：不再存在"),
    "row_joined": ("{boundary}: compared now, had no counterpart", "{boundary}：现可比较，先前没有对应"),
    "row_parted": ("{boundary}: has no counterpart any more", "{boundary}：不再有对应"),
    "row_cut": ("{boundary}: other ops on {side}", "{boundary}：{side} 的步骤改变"),
    "row_module": (
        "{boundary}: {side}: made in {before} before, in {after} now",
        "{boundary}：{side} 的所在模块原为 {before}，现为 {after}",
    ),
    "row_basis": ("{boundary}: joined by {before} before, by {after} now", "{boundary}：依据原为 {before}，现为 {after}"),
    "map_unchanged": ("no row changed", "没有任何行改变"),
    # --- bases and steps ---
    "basis_weights": ("weights", "权重"),
    "basis_values": ("values", "数值"),
    "basis_dataflow": ("data flow", "数据流"),
    "basis_signature": ("signature", "签名"),
    "basis_structure": ("structure", "结构"),
    "basis_name": ("name", "名称"),
    "basis_declared": ("declared", "人工声明"),
    "op_slice": ("axis {axis}: {start}:{stop}", "轴 {axis}：{start}:{stop}"),
    "op_take": ("axis {axis}: {runs}", "轴 {axis}：{runs}"),
    "op_permute": ("axes in the order {axes}", "轴序 {axes}"),
    "op_cast": ("as {dtype}", "转为 {dtype}"),
    "op_add": ("plus {value}", "加 {value}"),
}
